"""The client of the conformance suite on the login of the SDK: `sdk_client.py ADDRESS`, the rest in the environment."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx2
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl

from authorization.sdk_client import REDIRECT, Kept, sdk_client, sdk_login

DOCUMENT = "https://conformance-test.local/client-metadata.json"


def login(url: str, scenario: str, context: dict[str, Any]) -> httpx2.Auth:
    """Return the login that a scenario is about."""
    kept = Kept()
    if scenario == "auth/client-credentials-basic":
        return ClientCredentialsOAuthProvider(url, kept, context["client_id"], context["client_secret"])
    if scenario == "auth/client-credentials-jwt":
        signed = SignedJWTParameters(
            issuer=context["client_id"],
            subject=context["client_id"],
            signing_key=context["private_key_pem"],
            signing_algorithm=context["signing_algorithm"],
        )
        return PrivateKeyJWTOAuthProvider(url, kept, context["client_id"], signed.create_assertion_provider())
    if scenario == "auth/pre-registration":
        kept.client = OAuthClientInformationFull(
            client_id=context["client_id"],
            client_secret=context["client_secret"],
            token_endpoint_auth_method="client_secret_basic",
            redirect_uris=[AnyUrl(REDIRECT)],
            issuer=context["issuer"],
        )
    return sdk_login(url, kept, client_metadata_url=DOCUMENT)


async def main() -> None:
    """List the tools and call each once."""
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    if not scenario.startswith("auth/"):
        return
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    async with sdk_client(sys.argv[-1], login(sys.argv[-1], scenario, context)) as client:
        for tool in (await client.list_tools()).tools:
            await client.call_tool(tool.name, {})


if __name__ == "__main__":
    asyncio.run(main())
