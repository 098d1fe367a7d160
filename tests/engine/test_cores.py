"""Running threads never outnumber the cores."""

from __future__ import annotations

import threading

from hypothesis import given, settings
from hypothesis import strategies as st

from macr_local.engine.cores import Cores


@settings(deadline=None, max_examples=25)
@given(total=st.integers(1, 4), wants=st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_loans_together_never_exceed_the_cores_and_all_get_their_turn(total: int, wants: list[int]) -> None:
    cores = Cores(total)
    lock, held, most, turns = threading.Lock(), [0], [0], []

    def work(count: int) -> None:
        for _ in range(5):
            with cores.lend(count):
                with lock:
                    held[0] += min(count, total)
                    most[0] = max(most[0], held[0])
                with lock:
                    held[0] -= min(count, total)
        turns.append(count)

    threads = [threading.Thread(target=work, args=[count]) for count in wants]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert most[0] <= total
    assert sorted(turns) == sorted(wants)
