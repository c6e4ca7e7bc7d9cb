"""Cost-aware (this project's own): compact when carrying has cost as much as compacting will."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentkit.cache_rules import cache_rule, storing_costs
from agentkit.compaction.compactor import Compactor, Outcome, assemble
from agentkit.compaction.prompts import summary_prompt
from agentkit.compaction.transcript import flatten
from agentkit.log import Log, Projection, with_question
from agentkit.messages import Message, Request, user
from agentkit.policies.base import Situation
from agentkit.policies.branch import Branch, last_safe
from agentkit.policies.compacting import KeepingTail, fitting, previous_summary, projected
from agentkit.policies.receipt import make_receipt, recall_tool, without_receipt
from agentkit.policies.trail import Trail
from agentkit.policies.viewing import Answer, Sizes, ask
from agentkit.pricing import Prices
from agentkit.tokens import TextEstimator
from agentkit.tools.base import Tool

SHARE = 0.8
"""The share of the latest references that the tail has to cover. Free parameter 1: more recall for more money."""
RECEIPT = 600
"""Tokens of the receipt. Free parameter 2: the same trade, and cheaper."""
WIDEST = 4
"""The tail gets at most one part in this many of the threshold: a compaction that frees little would be due again soon."""


@dataclass(frozen=True)
class Terms:
    """What a token costs under the cache rule in force, in any currency: only the ratios count.

    Without a cache reading and writing cost what a fresh token costs.
    """

    fresh: float
    read: float
    write: float
    output: float

    @property
    def shares(self) -> bool:
        """Say whether a summary call is cheaper behind the cached prefix than as plain text."""
        return self.read < self.fresh

    @classmethod
    def of(cls, prices: Prices, cache: str | None = None) -> Terms:
        """Return the terms of a price list and its cache rule, or of the cache model named `cache`."""
        rates, rule = prices.rates, cache_rule(prices.provider, prices.model)
        kind = cache or rule.kind
        if kind == "none":
            return cls(rates.fresh, rates.fresh, rates.fresh, rates.output)
        write = rates.write if storing_costs(rule, kind) else rates.fresh
        return cls(rates.fresh, rates.read, write, rates.output)


USUAL = Terms(1.0, 0.1, 1.25, 5.0)
"""The ratios of Anthropic's price list (platform.claude.com, 2026-08-21): in force until somebody says others."""


@dataclass(frozen=True)
class Weighed:
    """The two sides: `carried` is what the extra since the last compaction has cost, `price` what a compaction costs now."""

    carried: float
    price: float


class CostAware(KeepingTail):
    """Compact when the extra carried since the last compaction has cost as much as compacting will.

    The extra of a request is what it had above the size that a compaction would leave now; each token of it cost a cache
    read. A compaction costs the summary's output, its instruction, and storing summary and tail anew. To wait until both are
    equal is the rule for renting skis until the rents have reached the price of a pair: for one compaction never more than
    twice the best choice, whatever comes. While a conversation grows evenly it is the square-root law of stock keeping
    (Harris, 1913). The count starts anew with each compaction, so the next one cannot follow at once. The budget's threshold
    is the latest moment.

    The tail reaches as far back as `share` of the latest 30 references did. The summary call stands behind the cached prefix
    where there is a cache. A receipt of at most `receipt` tokens ends the summary; `recall` gets an original back. All of it
    is read from the log; `terms` are a parameter. Pauses that end cache entries are not foreseen.
    """

    name = "cost-aware"
    year, source = "2026", "this project"
    note = "when carrying has cost as much as compacting will; tail by references, receipt"
    placement = "system"

    def __init__(self, compactor: Compactor, terms: Terms = USUAL, *, share: float = SHARE, receipt: int = RECEIPT) -> None:
        super().__init__(compactor)
        self.compactor, self.terms, self.share, self.receipt = compactor, terms, share, receipt
        self._trail = Trail(self.sizes)
        self._told = Told(compactor.estimator, self.clip)

    def priced(self, prices: Prices, cache: str | None = None) -> CostAware:
        """Return the same policy under the terms of a price list."""
        return CostAware(self.compactor, Terms.of(prices, cache), share=self.share, receipt=self.receipt)

    def tools(self, log: Log) -> tuple[Tool, ...]:
        """Return the tool of the model: get an original back."""
        return (recall_tool(log),)

    def is_due(self, branch: Branch, situation: Situation) -> bool:
        """Say whether carrying has cost enough, or the threshold is reached."""
        weighed = self.weigh(branch, situation)
        if weighed is None:
            return False
        return situation.estimate >= situation.budget.threshold or weighed.carried >= weighed.price

    def weigh(self, branch: Branch, situation: Situation) -> Weighed | None:
        """Return what carrying has cost so far and what compacting now would; None where nothing can be left out."""
        trail, view = self._trail.follow(branch.body), projected(branch)
        cut = self.cut(view.tail, situation)
        kept = with_question(view.tail, cut)
        if cut <= 0 or len(kept) >= len(view.tail):
            return None
        text, old = self.sizes.estimator.text, previous_summary(view)
        written = text(without_receipt(old)) if old else self.max_summary // 2
        whole, stays, replaced = self.sizes.sum(view.tail), self.sizes.sum(kept), text(old) if old else 0
        left = written + self.receipt + stays
        head = situation.estimate - whole - replaced
        now = trail.tokens(len(branch.body))
        since = branch.newest[1] if branch.newest else 0
        asked = (i for i in range(since, len(branch.body)) if branch.body[i].role == "assistant")
        extras = (situation.estimate - now + trail.tokens(i) - head - left for i in asked)
        price = self.terms.read * head + self.terms.write * left + self.terms.output * written
        return Weighed(
            self.terms.read * sum(extra for extra in extras if extra > 0),
            price + self._call(view.tail[:cut], replaced, situation.estimate),
        )

    def _call(self, gone: Sequence[Message], replaced: int, estimate: int) -> float:
        """Return what the summary call reads, less what the request would have read of it without a compaction."""
        instruction = self.sizes.estimator.text(self._instruction())
        if self.terms.shares:
            return self.terms.write * instruction
        return self.terms.fresh * (instruction + replaced + sum(map(self._told, gone))) - self.terms.read * estimate

    def cut(self, tail: Sequence[Message], situation: Situation) -> int:
        """Return the place as far back as the agent has lately referred to, where a tail may start."""
        most = min(self._trail.reach(self.share), situation.budget.threshold // WIDEST)
        return last_safe(tail, fitting(tail, most >> situation.harsher, [self.sizes(m) for m in tail]))

    def compact(self, branch: Branch, situation: Situation) -> Outcome:
        """Summarise what stands before the cut, and write the receipt."""
        self._trail.follow(branch.body)
        return super().compact(branch, situation)

    def summary_of(self, view: Projection, cut: int, situation: Situation) -> Answer:
        """Ask behind the cached prefix, or with the history as text where there is no cache; add the receipt."""
        if self.terms.shares:
            # Tools and thinking as in the conversation: another setting would be another prefix.
            sent = (*self._settler.settle(assemble(view)), user(self._instruction()))
            answer = ask(self.provider, Request(sent, situation.tools, self.max_summary))
        else:
            answer = self.summarise(view.tail[:cut], without_receipt(previous_summary(view)))
        if answer.fault or not self.receipt:
            return answer
        messages = self._trail.messages
        place = next(i for i in range(len(messages) - 1, -1, -1) if messages[i].id == view.tail[cut].id)
        receipt = make_receipt(messages[:place], self._trail, self.sizes.estimator.text, self.receipt)
        return replace(answer, text=f"{answer.text}\n\n{receipt}")

    def _instruction(self) -> str:
        return summary_prompt("(the conversation above)", self.keep)


class Told:
    """Tokens of a message as a flattened summary call shows it, clipped; each message is counted once."""

    def __init__(self, estimator: TextEstimator, clip: int) -> None:
        self._sizes, self.estimator, self.clip = Sizes(self), estimator, clip  # type: ignore[arg-type]

    def message(self, message: Message) -> int:
        """Return the tokens of a message."""
        return self.estimator.text(flatten([message], self.clip))

    def __call__(self, message: Message) -> int:
        return self._sizes(message)
