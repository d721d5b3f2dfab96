"""The FastAPI app: routes, their shapes on the OpenAPI page, errors. chat.py and service.py do the work."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, FastAPI, File, Form, Query, Request, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

import localctx
from localctx.errors import LocalctxError
from localctx.serve.bodies import ChatBody, EmbeddingsBody, Text
from localctx.serve.chat import complete
from localctx.serve.documents import NoSuchFile
from localctx.serve.gate import Gate
from localctx.serve.jobs import no_such_model
from localctx.serve.keys import Tenant
from localctx.serve.problems import Problem, of_error, of_unreadable, of_validation
from localctx.serve.service import Service
from localctx.serve.worker import Outcomes

__all__ = ["make_app"]

MAX_LISTED = 10_000


class ErrorBody(BaseModel):
    """OpenAI's error object."""

    model_config = ConfigDict(extra="allow")
    error: dict[str, Any]


ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorBody, "description": "What the client can put right"},
    "5XX": {"model": ErrorBody, "description": "What it cannot"},
}
router = APIRouter(responses=ERRORS)


async def _service(request: Request) -> Service:  # not async, it would be called in another thread
    service: Service = request.app.state.service
    return service


async def _tenant(request: Request) -> Tenant:
    tenant: Tenant = request.state.tenant
    return tenant


Serving = Annotated[Service, Depends(_service)]
Asking = Annotated[Tenant, Depends(_tenant)]


def make_app(service: Service, hosts: frozenset[str] | None = None) -> FastAPI:
    """The app. Its lifespan starts the worker and closes the service; `hosts` as in Gate."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        service.post = lambda outcomes: _post(loop, outcomes)
        service.worker.start()
        yield
        await run_in_threadpool(service.close)

    # Its pages of documentation would fetch scripts from elsewhere.
    app = FastAPI(
        title="localctx",
        version=localctx.__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        telemetry={"tracing": False},  # tracing.py's span is the request's
    )
    app.state.service = service
    app.include_router(router)
    app.add_exception_handler(Problem, _tell_problem)
    app.add_exception_handler(LocalctxError, _tell_error)
    app.add_exception_handler(NoSuchFile, _tell_no_file)
    app.add_exception_handler(RequestValidationError, _tell_validation)
    app.add_exception_handler(HTTPException, _tell_http)
    app.add_middleware(
        Gate,
        ring=service.ring,
        limits=service.options.limits,
        on_response=service.metrics.request,
        hosts=hosts,
    )
    return app


def _post(loop: asyncio.AbstractEventLoop, outcomes: Outcomes) -> None:
    """From the worker's thread to whoever waits; nobody does once the loop is closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(_deliver, outcomes)


def _deliver(outcomes: Outcomes) -> None:
    for ticket, outcome in outcomes:
        ticket.receive(outcome)


# --- errors -------------------------------------------------------------------------------------------


async def _tell_problem(request: Request, problem: Exception) -> Response:
    return problem.response() if isinstance(problem, Problem) else _unexpected()


async def _tell_error(request: Request, error: Exception) -> Response:
    return of_error(error).response() if isinstance(error, LocalctxError) else _unexpected()


async def _tell_no_file(request: Request, error: Exception) -> Response:
    return Problem(404, "No such File object.", code="file_not_found", param="id").response()


async def _tell_validation(request: Request, error: Exception) -> Response:
    return of_validation(error).response() if isinstance(error, RequestValidationError) else _unexpected()


async def _tell_http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return _unexpected()
    if error.status_code == 400:  # what the library says of it is about its own parser
        return of_unreadable(request.headers.get("content-type", "")).response()
    codes = {404: "unknown_url", 405: "method_not_allowed", 408: "body_too_slow", 413: "body_too_large"}
    message = f"{error.detail}: {request.method} {request.url.path}"
    code = codes.get(error.status_code)
    return Problem(error.status_code, message, code=code, headers=error.headers).response()


def _unexpected() -> Response:
    return Problem(500, "unexpected error", kind="server_error").response()


# --- routes -------------------------------------------------------------------------------------------


@router.get("/healthz")
async def healthz(service: Serving) -> JSONResponse:
    """200 while requests are taken, else 503."""
    is_well = service.worker.is_alive
    return JSONResponse({"status": "ok" if is_well else "stopping"}, 200 if is_well else 503)


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(service: Serving, tenant: Asking) -> Response:
    """Prometheus's text format, for keys with `metrics = true`."""
    if not tenant.metrics:
        raise Problem(403, "This key may not read /metrics.", code="no_metrics")
    service.metrics.waiting.set(service.worker.n_waiting)
    service.metrics.running.set(service.worker.n_running)
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.post("/v1/chat/completions", response_class=JSONResponse)
async def chat_completions(service: Serving, tenant: Asking, request: Request, body: ChatBody) -> Response:
    """A chat; with `localctx.documents` an answer from uploaded documents."""
    return await complete(service, request, tenant, body)


@router.get("/v1/models")
async def models(service: Serving) -> JSONResponse:
    """The served model, and the embedder."""
    return JSONResponse({"object": "list", "data": _models(service)})


@router.get("/v1/models/{model:path}")
async def model_of(service: Serving, model: Text) -> JSONResponse:
    """One of them."""
    found = next((row for row in _models(service) if row["id"] == model), None)
    if found is None:
        raise no_such_model(model)
    return JSONResponse(found)


def _models(service: Service) -> list[dict[str, Any]]:
    info = service.model.info
    facts = {"n_ctx": service.n_ctx, "n_ctx_train": info.n_ctx_train, "fingerprint": info.fingerprint}
    rows: list[dict[str, Any]] = [{"id": info.name, "localctx": facts}]
    if service.embedder_name is not None:
        rows.append({"id": service.embedder_name, "localctx": {"kind": "embedder"}})
    return [{**row, "object": "model", "created": 0, "owned_by": "localctx"} for row in rows]


@router.post("/v1/embeddings")
async def embeddings(service: Serving, body: EmbeddingsBody) -> JSONResponse:
    """Vectors of length 1, from the embedder that passages are found by."""
    if body.model != service.embedder_name:
        raise no_such_model(body.model)
    vectors, n_tokens = await run_in_threadpool(service.embed, body.texts)
    if body.dimensions not in (None, vectors.shape[1]):
        raise Problem(400, f"'dimensions' is {vectors.shape[1]} for this model.", param="dimensions")
    as_base64 = body.encoding_format == "base64"
    rows = [
        {
            "object": "embedding",
            "index": number,
            "embedding": _as_base64(row) if as_base64 else row.tolist(),
        }
        for number, row in enumerate(vectors)
    ]
    usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
    return JSONResponse({"object": "list", "data": rows, "model": body.model, "usage": usage})


def _as_base64(row: NDArray[np.float32]) -> str:
    return base64.b64encode(row.astype("<f4").tobytes()).decode()


@router.post("/v1/files")
async def upload(
    service: Serving,
    tenant: Asking,
    file: Annotated[UploadFile, File()],
    purpose: Annotated[Text, Form(max_length=64)] = "user_data",
) -> JSONResponse:
    """Take a document. It is read before the response: what cannot be used is refused here."""
    name = file.filename or "document"
    stored = await run_in_threadpool(service.upload, tenant, file.file, name, purpose)
    return JSONResponse(stored.to_json())


@router.get("/v1/files")
async def files(
    service: Serving,
    tenant: Asking,
    purpose: Annotated[str | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = MAX_LISTED,
    order: Annotated[Literal["asc", "desc"], Query()] = "desc",
    after: Annotated[str | None, Query()] = None,
) -> JSONResponse:
    """The key's documents, the newest first."""
    found = await run_in_threadpool(service.files.list, tenant)
    rows = [one for one in found if purpose in (None, one.purpose)][:: 1 if order == "desc" else -1]
    names = [one.id for one in rows]
    if after is not None:
        rows = rows[names.index(after) + 1 :] if after in names else []
    shown = [one.to_json() for one in rows[:limit]]
    ends = {"first_id": shown[0]["id"], "last_id": shown[-1]["id"]} if shown else {}
    return JSONResponse({"object": "list", "data": shown, "has_more": len(rows) > limit, **ends})


@router.get("/v1/files/{name}")
async def file_of(service: Serving, tenant: Asking, name: str) -> JSONResponse:
    """One of the key's documents."""
    found = await run_in_threadpool(service.files.get, tenant, name)
    return JSONResponse(found.to_json())


@router.get("/v1/files/{name}/content", response_class=FileResponse)
async def content_of(service: Serving, tenant: Asking, name: str) -> Response:
    """Its bytes, as they were uploaded."""
    found = await run_in_threadpool(service.files.get, tenant, name)
    return FileResponse(found.path, media_type="application/octet-stream", filename=found.filename)


@router.delete("/v1/files/{name}")
async def delete_file(service: Serving, tenant: Asking, name: str) -> JSONResponse:
    """Remove it, with what was computed from it."""
    await run_in_threadpool(service.files.delete, tenant, name)
    return JSONResponse({"id": name, "object": "file", "deleted": True})
