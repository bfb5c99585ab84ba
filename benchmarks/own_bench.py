import asyncio, tempfile, sys
from pathlib import Path
from benchmarks import console
from benchmarks.consoles import answers_timed, site
from benchmarks.retrieving.sets import folder
from benchmarks.__main__ import table
folder()
keep=("now","agents","switches","servers","server","bill, by agent","bill, by day","bill, by principal","bill, by session")
answers_timed.PAGES={k:v for k,v in answers_timed.PAGES.items() if k in keep}
answers_timed.JSON={k:v for k,v in answers_timed.JSON.items() if any(x in k for x in ("usage","bill","token_map","flow","servers"))}
with tempfile.TemporaryDirectory(prefix="pegboard-pictures-") as d:
    found=asyncio.run(console.measured(Path(d), site.Size(sessions=100,calls=300), rounds=20, parts=["answers"]))
for t,r in found.items(): table(t,r)
