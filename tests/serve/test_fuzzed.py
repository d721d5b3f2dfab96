"""Requests made up from the server's own OpenAPI page: none may end in a 5xx or undocumented."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from serve.serving import ALICE, PATIENCE_S, Serving

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.mark.parametrize("n_examples", [3, pytest.param(200, marks=pytest.mark.proof)])
def test_no_request_ends_in_what_the_page_does_not_say(server: Serving, n_examples: int) -> None:
    headers = {"Authorization": f"Bearer {ALICE}"}
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json", headers=headers, timeout=PATIENCE_S)
    n_operations = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        n_operations += 1
        check_one(operation, headers, n_examples)
    assert n_operations == 11


def check_one(operation: schemathesis.APIOperation, headers: dict[str, str], n_examples: int) -> None:
    @settings(
        max_examples=n_examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check(case: schemathesis.Case) -> None:
        if isinstance(case.body, dict) and "messages" in case.body:
            case.body["model"] = "tiny"  # else all are 404
        response = case.call(headers=headers, timeout=PATIENCE_S)
        case.validate_response(response, checks=CHECKS)

    check()
