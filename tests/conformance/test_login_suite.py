"""MCP's conformance suite finds nothing wrong with the logins of a client on Pegboard, but for what no client does."""

import pytest

from conformance.login_suite import SUITE, verdicts

NOT_BUILT = {
    "auth/enterprise-managed-authorization",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/wif-jwt-bearer",
}
"""The extensions that the SDK's client has not either."""


def test_g11_the_conformance_suite_passes_what_the_client_of_the_sdk_passes() -> None:
    if not SUITE.exists():
        pytest.skip("the conformance suite is not installed: make conformance")
    said = list(verdicts("pegboard"))
    failed = [str(verdict) for verdict in said if verdict.problems and verdict.scenario not in NOT_BUILT]
    assert failed == []
    assert len(said) == 47
