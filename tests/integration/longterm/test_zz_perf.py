import time, orjson, random, asyncio
from tests.integration.longterm.conftest import *
from tests.integration.longterm.told import entry
async def test_perf(house):
    import resource
    lines=[entry(f"{n:012x}", f"fact {n} about trains and boats in the year {n%100} "*8, tags=["a"], created_at="2026-01-01T00:00:00Z") for n in range(10000)]
    t=time.perf_counter(); r=await house.take(*lines); print("import", time.perf_counter()-t, r["created"])
    t=time.perf_counter(); r=await house.take(*lines); print("again", time.perf_counter()-t, r["skipped"])
    t=time.perf_counter(); x=await house.lines(); print("export", time.perf_counter()-t, len(x))
    t=time.perf_counter(); r=await house.take(*x, scope=house.scope("z")); print("remap", time.perf_counter()-t, r["created"], len(r["remapped"]))
    t=time.perf_counter(); r=await house.take(*[l|{"content":l["content"]+"!"} for l in lines[:1000]]); print("update 1000", time.perf_counter()-t, r["updated"])
async def test_odd(house):
    odd=["x"*16000, "漢"*16000, "\U0001f600"*16000, " ".join(random.sample(range(10**6),2500).__str__().split()), "\\"*16000, "'"*9000, "a-"*8000, "\u0301"*16000, "i\u0307"*8000, "ﬁ"*16000, "\ufdfa"*16000]
    r=await house.take(*[entry(f"{n:012x}", c[:16000]) for n,c in enumerate(odd)])
    print({k:v for k,v in r.items()})
    assert r["created"]==len(odd)
