"""An application's own settings page with the switches of an agent, over the JSON of `pegboard serve`.
In an application its own sign-in stands before it: whoever opens the page may switch."""

import os
import sys
from html import escape
from urllib.parse import quote, urlencode

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.routing import Route

PAGE = "<!doctype html><html lang=en><title>Settings</title><h1>Settings</h1>"
API = f"{os.environ.get('PEGBOARD_URL', 'http://127.0.0.1:8321')}/api/agents/{quote(sys.argv[1], safe='')}/switches"
pegboard = httpx2.AsyncClient(headers={"Authorization": f"Bearer {os.environ['PEGBOARD_TOKEN']}"})


async def settings(_request):
    items = ""
    for row in (await pegboard.get(API)).raise_for_status().json()["rows"]:
        link = escape(urlencode({"name": row["switch_name"], "value": "false" if row["on"] else "true"}))
        text = escape(f"{row['label']} is {'on' if row['on'] else 'off'}. {row['reason']['text']}")
        items += f"<li>{text} <a href='/change?{link}'>Change</a>"
    return HTMLResponse(f"{PAGE}<ul>{items}</ul>")


async def change(request):
    asked = dict(request.query_params)
    if request.method == "POST":
        (await pegboard.put(API, json={**asked, "value": asked["value"] == "true"})).raise_for_status()
        return RedirectResponse("/", 303)
    would = (await pegboard.get(f"{API}/preview", params=asked)).raise_for_status().json()
    text = escape(f"Gained: {', '.join(would['gained'])}. Lost: {', '.join(would['lost'])}.")
    return HTMLResponse(f"{PAGE}<p>{text}<form method=post><button>Do it</button></form>")


routes = [Route("/", settings), Route("/change", change, methods=["GET", "POST"])]
uvicorn.run(Starlette(routes=routes), port=int(os.environ.get("PORT", "8400")))
