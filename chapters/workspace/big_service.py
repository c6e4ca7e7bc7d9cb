"""The forty steps of the parcel tariff, each in whole cents."""


class BigService:
    calls = 0

    # base rate per kilogram
    def compute1(self, x: int) -> int:
        self.calls += 1
        base = x * 1
        shifted = base << 2
        return shifted + 1

    # fuel surcharge
    def compute2(self, x: int) -> int:
        self.calls += 1
        base = x * 2
        shifted = base << 3
        return shifted + 2

    # weekend collection
    def compute3(self, x: int) -> int:
        self.calls += 1
        base = x * 3
        shifted = base << 1
        return shifted + 3

    # remote area
    def compute4(self, x: int) -> int:
        self.calls += 1
        base = x * 4
        shifted = base << 2
        return shifted + 4

    # island crossing
    def compute5(self, x: int) -> int:
        self.calls += 1
        base = x * 5
        shifted = base << 3
        return shifted + 5

    # toll share
    def compute6(self, x: int) -> int:
        self.calls += 1
        base = x * 6
        shifted = base << 1
        return shifted + 6

    # paper customs form
    def compute7(self, x: int) -> int:
        self.calls += 1
        base = x * 7
        shifted = base << 2
        return shifted + 7

    # signature on delivery
    def compute8(self, x: int) -> int:
        self.calls += 1
        base = x * 8
        shifted = base << 3
        return shifted + 8

    # evening slot
    def compute9(self, x: int) -> int:
        self.calls += 1
        base = x * 9
        shifted = base << 1
        return shifted + 9

    # fragile handling
    def compute10(self, x: int) -> int:
        self.calls += 1
        base = x * 10
        shifted = base << 2
        return shifted + 10

    # oversize: longest side
    def compute11(self, x: int) -> int:
        self.calls += 1
        base = x * 11
        shifted = base << 3
        return shifted + 11

    # oversize: girth
    def compute12(self, x: int) -> int:
        self.calls += 1
        base = x * 12
        shifted = base << 1
        return shifted + 12

    # volume weight
    def compute13(self, x: int) -> int:
        self.calls += 1
        base = x * 13
        shifted = base << 2
        return shifted + 13

    # cold chain
    def compute14(self, x: int) -> int:
        self.calls += 1
        base = x * 14
        shifted = base << 3
        return shifted + 14

    # dry ice
    def compute15(self, x: int) -> int:
        self.calls += 1
        base = x * 15
        shifted = base << 1
        return shifted + 15

    # lithium batteries
    def compute16(self, x: int) -> int:
        self.calls += 1
        base = x * 16
        shifted = base << 2
        return shifted + 16

    # insurance, first band
    def compute17(self, x: int) -> int:
        self.calls += 1
        base = x * 17
        shifted = base << 3
        return shifted + 17

    # insurance, second band
    def compute18(self, x: int) -> int:
        self.calls += 1
        base = x * 18
        shifted = base << 1
        return shifted + 18

    # insurance, third band
    def compute19(self, x: int) -> int:
        self.calls += 1
        base = x * 19
        shifted = base << 2
        return shifted + 19

    # return label
    def compute20(self, x: int) -> int:
        self.calls += 1
        base = x * 20
        shifted = base << 3
        return shifted + 20

    # second attempt
    def compute21(self, x: int) -> int:
        self.calls += 1
        base = x * 21
        shifted = base << 1
        return shifted + 21

    # storage after day five
    def compute22(self, x: int) -> int:
        self.calls += 1
        base = x * 22
        shifted = base << 2
        return shifted + 22

    # pallet exchange
    def compute23(self, x: int) -> int:
        self.calls += 1
        base = x * 23
        shifted = base << 3
        return shifted + 23

    # tail lift
    def compute24(self, x: int) -> int:
        self.calls += 1
        base = x * 24
        shifted = base << 1
        return shifted + 24

    # two-person delivery
    def compute25(self, x: int) -> int:
        self.calls += 1
        base = x * 25
        shifted = base << 2
        return shifted + 25

    # identity check
    def compute26(self, x: int) -> int:
        self.calls += 1
        base = x * 26
        shifted = base << 3
        return shifted + 26

    # cash on delivery
    def compute27(self, x: int) -> int:
        self.calls += 1
        base = x * 27
        shifted = base << 1
        return shifted + 27

    # currency spread
    def compute28(self, x: int) -> int:
        self.calls += 1
        base = x * 28
        shifted = base << 2
        return shifted + 28

    # peak season
    def compute29(self, x: int) -> int:
        self.calls += 1
        base = x * 29
        shifted = base << 3
        return shifted + 29

    # off-peak rebate
    def compute30(self, x: int) -> int:
        self.calls += 1
        base = x * 30
        shifted = base << 1
        return shifted + 30

    # contract rebate
    def compute31(self, x: int) -> int:
        self.calls += 1
        base = x * 31
        shifted = base << 2
        return shifted + 31

    # volume rebate
    def compute32(self, x: int) -> int:
        self.calls += 1
        base = x * 32
        shifted = base << 3
        return shifted + 32

    # prepaid credit
    def compute33(self, x: int) -> int:
        self.calls += 1
        base = x * 33
        shifted = base << 1
        return shifted + 33

    # recycled packaging
    def compute34(self, x: int) -> int:
        self.calls += 1
        base = x * 34
        shifted = base << 2
        return shifted + 34

    # carbon offset
    def compute35(self, x: int) -> int:
        self.calls += 1
        base = x * 35
        shifted = base << 3
        return shifted + 35

    # depot transfer
    def compute36(self, x: int) -> int:
        self.calls += 1
        base = x * 36
        shifted = base << 1
        return shifted + 36

    # night sort
    def compute37(self, x: int) -> int:
        self.calls += 1
        base = x * 37
        shifted = base << 2
        return shifted + 37

    # airport handling
    def compute38(self, x: int) -> int:
        self.calls += 1
        base = x * 38
        shifted = base << 3
        return shifted + 38

    # broker fee
    def compute39(self, x: int) -> int:
        self.calls += 1
        base = x * 39
        shifted = base << 1
        return shifted + 39

    # final rounding
    def compute40(self, x: int) -> int:
        self.calls += 1
        base = x * 40
        shifted = base << 2
        return shifted + 40
