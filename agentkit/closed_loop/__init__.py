"""Every policy at work: the scenarios played by the agent on the simulator, closed loop, and what forgetting costs there.

`cells` plays one scenario under one policy, `live` all of them; `survival` counts which facts outlast compactions; `against`
holds the result against a replay; `recorded` reads the results that are kept in the package, `record` makes them again.
"""
