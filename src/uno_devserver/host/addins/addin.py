"""`AddIn`, the object with which an add-in registers its tools, resources, prompts and handlers.

    from uno_devserver.host.addins import AddIn

    def register(addin: AddIn) -> None:
        @addin.tool
        def shout(text: str) -> str:
            "Return the text in capitals."
            return text.upper()

A mistake in a registration (a type without a schema, an invalid name) raises here, so the add-in fails when it
is loaded, not when it is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ...system.log import log
from .handlers import IdeHandler, Processor, guarded_handler
from .invocation import CallTarget, is_async
from .prompts import Completion, Prompt, make_completion, make_prompt
from .resources import Resource, make_resource
from .signatures import description_of, label_of, signature_of
from .tools import Tool, make_tool

if TYPE_CHECKING:
    from .loaded_addin import LoadedAddIn
    from .sdk import SdkServer

Function = TypeVar("Function", bound=Callable[..., Any])


class Registrations:
    """What an add-in has registered."""

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.resources: dict[str, Resource] = {}  # by URI or template
        self.prompts: dict[str, Prompt] = {}
        self.completions: dict[tuple[str, str], Completion] = {}
        self.processors: list[Processor] = []
        self.ide_handlers: list[IdeHandler] = []
        self.servers: list[SdkServer] = []
        self.on_start: list[Callable[[], Any]] = []
        self.on_stop: list[Callable[[], Any]] = []
        self.background: list[Callable[[], Any]] = []
        self.health: Callable[[], Any] | None = None


class AddInLog:
    """The Host's log, with the add-in's name in each line."""

    def __init__(self, name: str) -> None:
        self._name = name

    def debug(self, message: str) -> None:
        log.debug(f"[{self._name}] {message}")

    def info(self, message: str) -> None:
        log.info(f"[{self._name}] {message}")

    def warn(self, message: str) -> None:
        log.warn(f"[{self._name}] {message}")


class AddIn:
    """Passed to `register`. Everything may be registered later too; clients are notified when a list changes."""

    def __init__(
        self,
        home: LoadedAddIn,
        registrations: Registrations,
        *,
        workspace: str,
        solution: str | None,
        settings: Mapping[str, str],
    ) -> None:
        self.name = home.name
        self.workspace = workspace  # the folder of the workspace
        self.solution = solution  # the path of the solution; None if the Host has none
        self.log = AddInLog(home.name)
        self._home = home
        self._settings = {key.lower(): value for key, value in settings.items()}
        self._registrations = registrations

    def setting(self, key: str) -> str | None:
        """The value of a flag of the Host's command line, which may be one for add-ins only; None if it is absent."""
        return self._settings.get(key.lower())

    @overload
    def tool(self, function: Function, /) -> Function: ...
    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        idempotent: bool | None = None,
        destructive: bool | None = None,
        open_world: bool | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Callable[[Function], Function]: ...
    def tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        idempotent: bool | None = None,
        destructive: bool | None = None,
        open_world: bool | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """Offer a typed function as a tool; its name, docstring and annotations describe it.

        A client may call `read_only` and `idempotent` tools again if an answer was lost. `input_schema` and
        `output_schema` replace the schemas that clients see; arguments are still checked by the annotations.
        """
        hints = {
            "readOnlyHint": read_only,
            "destructiveHint": destructive,
            "idempotentHint": idempotent,
            "openWorldHint": open_world,
        }
        names = _names_at_caller()

        def add(function: Function) -> Function:
            listed = description_of(function, name, title, description)
            tool = make_tool(function, signature_of(function, names), listed, hints, input_schema, output_schema, meta)
            self._add("tool", self._registrations.tools, tool.name, tool)
            self.tools_changed()
            return function

        return add if function is None else add(function)

    def remove_tool(self, name: str) -> None:
        """Stop offering a tool; raises KeyError if this add-in does not offer it."""
        del self._registrations.tools[name]
        self._home.release("tool", name)
        self.tools_changed()

    def tools_changed(self) -> None:
        """Notify clients that the tools changed; only needed for changes that were not made through this object."""
        self._home.changed("notifications/tools/list_changed")

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        annotations: Mapping[str, Any] | None = None,
    ) -> Callable[[Function], Function]:
        """Offer what a function returns (text, bytes, or data as JSON) under a URI.

        A URI with variables, such as `notes://{day}/{+path}`, is a template; the function takes the variables by name.
        """
        _check_text(uri, '@addin.resource("notes://today")')
        names = _names_at_caller()

        def add(function: Function) -> Function:
            described = description_of(function, name or None, title or None, description or None)
            resource = make_resource(uri, function, signature_of(function, names), described, mime_type, annotations)
            self._add("resource", self._registrations.resources, uri, resource)
            self._home.changed("notifications/resources/list_changed")
            return function

        return add

    def resource_updated(self, uri: str) -> None:
        """Notify the clients that subscribed to this URI."""
        self._home.changed("notifications/resources/updated", {"uri": uri})

    @overload
    def prompt(self, function: Function, /) -> Function: ...
    @overload
    def prompt(
        self, *, name: str | None = None, title: str | None = None, description: str | None = None
    ) -> Callable[[Function], Function]: ...
    def prompt(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
    ) -> Any:
        """Offer a function as a prompt: it returns text, content, or a list of `user(...)` and `assistant(...)`."""
        names = _names_at_caller()

        def add(function: Function) -> Function:
            listed = description_of(function, name or None, title, description or None)
            prompt = make_prompt(function, signature_of(function, names), listed)
            self._add("prompt", self._registrations.prompts, prompt.name, prompt)
            self._home.changed("notifications/prompts/list_changed")
            return function

        return add if function is None else add(function)

    def completion(self, reference: str, argument: str) -> Callable[[Function], Function]:
        """Suggest values for an argument of a prompt (`reference` is its name) or a variable of a template.

        The function takes the text so far, and may take the other arguments as a dict; it returns the values.
        """

        def add(function: Function) -> Function:
            completion = make_completion(reference, argument, function)
            self._add("completion", self._registrations.completions, (reference, argument), completion)
            return function

        return add

    def processor(self, scope: str) -> Callable[[Function], Function]:
        """Handle the frames that apps send on `/rc` in this scope: `handle(name, content, app)`."""
        _check_text(scope, '@addin.processor("Acme.Scope")')

        def add(function: Function) -> Function:
            if self._home.claim("processor", scope):
                handler = guarded_handler(function, CallTarget(self.name, "processor", scope), self._home.count_failure)
                self._registrations.processors.append(Processor(scope, handler, self.name))
            return function

        return add

    def ide_message(self, type_name: str) -> Callable[[Function], Function]:
        """Handle the messages of one type that the IDE sends: `handle(body, ide)`."""
        _check_text(type_name, '@addin.ide_message("Acme.Message")')

        def add(function: Function) -> Function:
            handler = guarded_handler(
                function, CallTarget(self.name, "IDE message", type_name), self._home.count_failure
            )
            self._registrations.ide_handlers.append(IdeHandler(type_name, handler, self.name))
            return function

        return add

    def send_to_ide(self, type_name: str, body: Mapping[str, Any]) -> bool:
        """Send a message to the IDE; return False if none is connected."""
        return self._home.send_to_ide(type_name, body)

    def on_start(self, function: Function) -> Function:
        """Run this function once all add-ins are loaded, before any call. If it fails, the add-in is removed."""
        self._registrations.on_start.append(function)
        return function

    def on_stop(self, function: Function) -> Function:
        """Run this function when the Host stops; it has a few seconds."""
        self._registrations.on_stop.append(function)
        return function

    def background(self, function: Function) -> Function:
        """Run this async function while the Host runs; it is cancelled when the Host stops."""
        if not is_async(function):
            raise TypeError(f"{label_of(function)} must be async: a plain one would keep a thread from the tools")
        self._registrations.background.append(function)
        return function

    def health(self, function: Function) -> Function:
        """Show the text that this function returns in the health report; if it raises, the Host is `Degraded`."""
        self._registrations.health = function
        return function

    def serve(self, server: object) -> None:
        """Offer everything that a server made with the official SDK offers (`MCPServer`, or the low-level `Server`)."""
        try:
            from .sdk import SdkServer
        except ImportError as error:
            raise RuntimeError(
                f"this version of the SDK cannot be served: {error}; install mcp 2.3 or newer"
            ) from error
        self._registrations.servers.append(SdkServer(server, self._home))

    def _add(self, kind: str, offered: dict[Any, Any], name: Any, item: object) -> None:
        if name in offered:
            raise ValueError(f"the {kind} '{name}' is registered twice")
        if self._home.claim(kind, str(name)):
            offered[name] = item


def _check_text(value: object, usage: str) -> None:
    """Raise if a decorator is used without its argument, so that it receives the function instead."""
    if not isinstance(value, str):
        raise TypeError(f"write {usage}, not {label_of(value)}")


def _names_at_caller() -> dict[str, Any]:
    """The names visible where a decorator is used; annotations may name types defined in `register`."""
    return dict(sys._getframe(2).f_locals)
