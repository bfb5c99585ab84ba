"""Construct the plugin that the environment names, and answer for it until the input ends."""

import json
import os
import sys

if __name__ == "__main__":
    given = json.loads(os.environ.pop("PEGBOARD_PLUGIN"))
    sys.path[:] = given["path"]
    from pegboard.sources.plugin_process.child.serving import serve

    serve(given)
