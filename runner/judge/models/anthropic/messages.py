"""A Claude model asked through Anthropic's Messages API, a few requests at a time."""

from runner.base.canonical import JSON
from runner.eval_set.plan import is_same_model
from runner.judge.models.anthropic.client import AnthropicClient, tell_of_end
from runner.judge.models.anthropic.wire import beyond_sdk, headers, params, reply_of, with_room
from runner.judge.models.client import JudgeClient
from runner.judge.models.requests import Ask, Astray, Reply


class AnthropicMessages(JudgeClient):
    """The model. Raises as LanguageModel says."""

    http: AnthropicClient

    def connected(self) -> tuple[AnthropicClient, str]:
        """The service at its own address or another one."""
        http = AnthropicClient(self.way)
        tell_of_end(self.model)
        return http, http.url

    def check(self) -> None:
        """As JudgeClient has it: the model is looked up, which costs nothing."""
        self.http.check_key(self.model)

    def sent(self, ask: Ask) -> Ask:
        """With room to think, if the model cannot be kept from it."""
        return with_room(self.model, ask)

    def send(self, ask: Ask) -> JSON:
        """One message, as received."""
        create = self.http.sdk.messages.with_raw_response.create
        fields, beyond = params(self.model, ask), beyond_sdk(self.model)
        return self.http.json(
            lambda: create(**fields, extra_headers=headers(self.model), extra_body=beyond).http_response
        )

    def read(self, ask: Ask, answer: JSON) -> Reply:
        """The reply in a message."""
        return reply_of(ask.key, self.model, answer)

    def accepted(self, reply: Reply) -> Reply:
        """The reply; Astray from another model."""
        if reply.model and not is_same_model(self.model, reply.model):
            raise Astray(reply)
        return reply
