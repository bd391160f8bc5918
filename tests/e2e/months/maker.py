"""Makes random months."""

from datetime import UTC, datetime
from random import Random

from tests.e2e.months.month import DAY, HOUR, MINUTE, Month, MonthNode, Stay, Stretch, Tenant

MODELS = ("NVIDIA H200", "NVIDIA L40S", "NVIDIA A100-SXM4-80GB")
TEAMS = ("red", "blue", "green")
LONG_EACH = 20  # one of so many is a whole month, the others are some days


class Maker:
    """Makes a month of a seed."""

    def __init__(self, seed: int, now: float, *, days: int | None = None) -> None:
        self._random = random = Random(seed)
        interval = random.choice((60, 300, 300))
        some_days = random.choice((1, 2)) if interval == 60 else random.choice((3, 5, 7))
        if seed % LONG_EACH == LONG_EACH - 1:
            interval, some_days = 300, 30
        days = days or some_days
        end = now // DAY * DAY - DAY + random.randrange(0, HOUR)
        self._month = Month(f"month-{seed}", end - days * DAY, end, interval)
        self._month.has_kubernetes = random.random() < 0.6

    def made(self) -> Month:
        month, random = self._month, self._random
        for number in range(random.choice((1, 1, 2, 3))):
            self._add_node(f"node-{number}")
        if len(month.nodes) > 1 and random.random() < 0.5:
            self._move_a_gpu()
        if random.random() < 0.3:
            self._add_unscraped()
        if random.random() < 0.4:
            self._take_the_store_away()
        if random.random() < 0.1:
            month.away.append((month.end - random.randrange(1, 5) * HOUR, month.whole[1] + 1))
        for stay in {stay.uuid: stay for stay in month.stays}.values():
            self._add_tenants(stay.uuid)
        self._set_prices()
        # A node without GPUs, so that kube-state-metrics always has one.
        month.nodes.append(MonthNode("control", (month.whole[0] - DAY, month.whole[1] + 1), (), 0))
        return month

    def _take_the_store_away(self) -> None:
        """While agents go on counting: none starts or ends meanwhile."""
        month = self._month
        begins = self._inside()
        ends = begins + self._random.randrange(1, 5) * HOUR
        edges = [edge for stay in month.stays for piece in month.counted(stay) for edge in piece]
        edges += [edge for node in month.nodes for edge in (*node.jump[:2], *node.there)]
        if not any(begins - HOUR <= edge <= ends + HOUR for edge in edges):
            month.away.append((begins, ends))

    def _inside(self) -> float:
        """A time well within the month."""
        return self._random.uniform(self._month.start + 2 * HOUR, self._month.end - 8 * HOUR)

    def _add_node(self, name: str) -> None:
        month, random = self._month, self._random
        first, last = month.whole
        there = [first - DAY * 3, last + 1]
        if random.random() < 0.25:
            there[0] = self._inside()
        if random.random() < 0.2:
            there[1] = random.uniform(max(there[0], month.start) + 3 * HOUR, month.end - HOUR)
        agents = self._agents(max(there[0], first) - 1, min(there[1], last + 1))
        jump = (0.0, 0.0, 0.0)
        if random.random() < 0.3:
            begins = self._inside()
            # What an agent counted that ended while samples were refused, nobody could know.
            if not any(begins - HOUR < edge < begins + 2 * HOUR for agent in agents for edge in agent):
                jump = begins, begins + HOUR, random.choice((-1, 1)) * random.randrange(60, 2000)
        node = MonthNode(name, (there[0], there[1]), tuple(agents), random.randrange(month.interval), jump)
        month.nodes.append(node)
        for number in range(random.choice((1, 1, 2))):
            lost: tuple[Stretch, ...] = ()
            if random.random() < 0.25:
                begins = self._inside()
                lost = ((begins, begins + random.uniform(0.5, 6) * HOUR),)
            uuid = f"GPU-{month.name}-{name}-{number}"
            stay = Stay(name, uuid, random.choice(MODELS), agents[0][0] - HOUR, agents[-1][1] + HOUR, lost)
            month.stays.append(stay)

    def _agents(self, begins: float, ends: float) -> list[Stretch]:
        """Agents that follow each other: right away, as after an update, or after hours."""
        random = self._random
        if random.random() < 0.2:  # it is installed late
            begins = random.uniform(max(begins, self._month.start) + HOUR, ends - 90 * MINUTE)
        cuts = sorted(random.uniform(begins + MINUTE, ends - HOUR) for _ in range(random.choice((0, 0, 1, 2, 4))))
        found: list[Stretch] = []
        at = begins
        for cut in cuts:
            if cut > at + 20 * MINUTE:
                found.append((at, cut))
                at = cut + random.choice((2.0, 20.0, random.uniform(0.5, 8) * HOUR))
        if at < ends - 30 * MINUTE:
            found.append((at, ends))
        return found or [(begins, ends)]

    def _move_a_gpu(self) -> None:
        month, random = self._month, self._random
        stay = random.choice(month.stays)
        target = random.choice([node for node in month.nodes if node.name != stay.node])
        source = month.node(stay.node)
        earliest = max(source.agents[0][0], target.agents[0][0], month.start) + 2 * HOUR
        latest = min(source.agents[-1][1], target.agents[-1][1], month.end) - 2 * HOUR
        if earliest >= latest:
            return
        leaves = random.uniform(earliest, latest)
        # Whether a shorter time is a gap depends on when the scrapes are.
        away = max(random.uniform(0.1, 3) * HOUR, month.pause + 1)
        comes = min(leaves + away, latest + HOUR)
        month.stays.remove(stay)
        month.stays.append(Stay(stay.node, stay.uuid, stay.model, stay.begins, leaves))
        month.stays.append(Stay(target.name, stay.uuid, stay.model, comes, target.agents[-1][1] + HOUR))

    def _add_unscraped(self) -> None:
        month, random = self._month, self._random
        there = (month.start - DAY, month.whole[1] + 1) if random.random() < 0.5 else (self._inside(), month.end)
        node = MonthNode(
            "dark",
            there,
            (),
            0,
            unscraped_gpus=random.choice((1, 2, 8)),
            replicas=random.choice((1, 4)),
            has_count=random.random() < 0.5,
        )
        month.nodes.append(node)

    def _add_tenants(self, uuid: str) -> None:
        """Each of some equal parts of a GPU has one pod after another. From some time on there may be other parts."""
        month, random = self._month, self._random
        remade = self._inside()
        first, last = month.whole
        is_mig = random.random() < 0.4
        for begins, ends in ((first, remade), (remade, last)) if is_mig else ((first, last),):
            parts = random.choice((1, 2, 4))
            for part in range(parts):
                self._fill(uuid, part, parts, (begins, ends), f"{12 // parts}g.{part}" if is_mig else "")

    def _fill(self, uuid: str, part: int, parts: int, within: Stretch, mig: str) -> None:
        month, random = self._month, self._random
        at = within[0] + random.choice((0, random.uniform(0, 20) * HOUR))
        number = 0
        while at < within[1]:
            ends = min(at + random.choice((random.uniform(0.1, 3), random.uniform(5, 90))) * HOUR, within[1])
            most = 2.0 if parts == 4 and part == 0 and not mig else 0.6
            # Whether a pod of the same name ended while nothing came into the store, nobody could say.
            is_blind = any(blind[0] - HOUR <= at <= blind[1] + HOUR for blind in month.blind(month.nodes))
            is_again = random.random() < 0.5 and not is_blind
            name = f"job-{uuid[-8:]}-{part}" if is_again else f"pod-{uuid[-8:]}-{part}-{number}"
            number += 1
            share = 1 / parts
            busy = round(share * random.uniform(0, most), 3)
            space = random.choice(("ml", "web"))
            tenant = Tenant(uuid, name, space, random.choice(TEAMS), mig, share, busy, at, ends)
            month.tenants.append(tenant)
            at = ends + random.choice((0.0, 30.0, 10 * MINUTE, random.uniform(0, 30) * HOUR))

    def _set_prices(self) -> None:
        month, random = self._month, self._random
        currency = random.choice(("EUR", "USD", "JPY", "KWD"))
        month.prices = {"currency": currency, "gpu_hour": {"*H200*": "3.51", "*": "1.07"}, "kwh": "0.29"}
        if random.random() < 0.4:
            changed = month.price_change = round(self._inside())
            since = datetime.fromtimestamp(changed, UTC).isoformat()
            month.prices["changes"] = [{"from": since, "gpu_hour": {"*": "2.5"}, "kwh": "0.31"}]
