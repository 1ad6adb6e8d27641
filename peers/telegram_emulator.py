"""A Telegram Bot API for tests, whose parameters and updates are judged by the models of aiogram.

It listens on 127.0.0.1, prints `{"port": N}` as soon as it does, and ends when its standard input closes. Calls of the Bot API
(`/bot<token>/<method>`, JSON or a form) whose parameters aiogram's model of the method refuses or does not know, at any depth, are
answered 400. So are texts, captions and callback data that are too long. The token must be the one given with --token, or 401.
What the chat_id of a sending method is decides its fate:

    400    400 chat not found            403    403 blocked by the user
    429    429 with retry_after 3        500    500 Internal Server Error
    504    the connection closes after the message was taken

The tests' own calls:

    GET  /_sent    what was taken, oldest first: `method`, `parameters`, `files` (by parameter: `filename`, `contentType`, `size`,
                   `sha256`)
    POST /_push    an update without `update_id`, as aiogram's model has it. It is posted to the webhook with its secret, if one is
                   set, and otherwise told by getUpdates until the offset confirms it. Answers `status` and `body` of the webhook, or
                   null and null
    POST /_file    `{"fileId", "path", "content"}`: a file that getFile names and that can be downloaded
"""

import argparse
import asyncio
import hashlib
import inspect
import itertools
import json
import os
import sys
import threading
import time

import aiogram.methods
import aiogram.types
from aiohttp import ClientSession, web
from pydantic import BaseModel, ValidationError

METHODS = {
    cls.__api_method__: cls
    for _, cls in inspect.getmembers(aiogram.methods, inspect.isclass)
    if isinstance(getattr(cls, "__api_method__", None), str)
}
FATES = {
    400: (400, "Bad Request: chat not found", {}),
    403: (403, "Forbidden: bot was blocked by the user", {}),
    429: (429, "Too Many Requests: retry after 3", {"retry_after": 3}),
    500: (500, "Internal Server Error", {}),
}
LONGEST = {"text": 4096, "caption": 1024}


class Refused(Exception):
    def __init__(self, code, description, parameters=None):
        super().__init__(description)
        self.code, self.description, self.parameters = code, description, parameters or {}


def unknown(model, path=""):
    """The parameters, at any depth, that the model does not have."""
    if isinstance(model, (list, tuple)):
        return [name for item in model for name in unknown(item, path)]
    if not isinstance(model, BaseModel):
        return []
    found = [path + name for name in model.model_extra or {}]
    return found + [n for name in model.model_fields_set for n in unknown(getattr(model, name), f"{path}{name}.")]


def validated(cls, value):
    try:
        model = cls.model_validate(value)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise Refused(400, f"Bad Request: {'; '.join(faults)}") from error
    if extra := unknown(model):
        raise Refused(400, f"Bad Request: unknown parameters {', '.join(extra)}")
    return model


async def read(request):
    """The parameters of a call, and the files that came along."""
    if request.content_type == "application/json":
        return await request.json(), {}
    if request.content_type != "multipart/form-data":
        raise Refused(400, f"Bad Request: a body of type {request.content_type}")
    parameters, files = {}, {}
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            content = value.file.read()
            digest = hashlib.sha256(content).hexdigest()
            kind = value.content_type
            files[name] = {"filename": value.filename, "contentType": kind, "size": len(content), "sha256": digest}
            parameters[name] = f"attach://{value.filename}"
        else:
            parameters[name] = json.loads(value) if value[:1] in ("[", "{") else value
    return parameters, files


class Bot:
    def __init__(self, token):
        self.token = token
        self.sent, self.updates, self.files = [], [], {}
        self.webhook = {"url": ""}
        self.numbers, self.update_numbers = itertools.count(1), itertools.count(1)
        self.told = asyncio.Event()

    async def call(self, request):
        try:
            if request.match_info["token"] != self.token:
                raise Refused(401, "Unauthorized")
            cls = METHODS.get(request.match_info["method"])
            if cls is None:
                raise Refused(404, "Not Found: method not found")
            parameters, files = await read(request)
            validated(cls, parameters)
            result = await self.answer(request, cls.__api_method__, parameters, files)
        except Refused as refused:
            body = {"ok": False, "error_code": refused.code, "description": refused.description}
            return web.json_response(body | {"parameters": refused.parameters}, status=refused.code)
        return web.json_response({"ok": True, "result": result})

    async def answer(self, request, method, parameters, files):
        own = getattr(self, method, None)
        if own:
            return await own(parameters)
        self.judge(parameters)
        self.sent.append({"method": method, "parameters": parameters, "files": files})
        if method in ("answerCallbackQuery", "setMessageReaction"):
            return True
        chat = int(parameters["chat_id"])
        if chat == 504:
            request.transport.abort()
        message = {"message_id": next(self.numbers), "date": int(time.time()), "chat": {"id": chat, "type": "private"}}
        aiogram.types.Message.model_validate(message)
        return message

    def judge(self, parameters):
        if fate := FATES.get(int(parameters.get("chat_id", 0))):
            raise Refused(*fate)
        for name, longest in LONGEST.items():
            if len(parameters.get(name) or "") > longest:
                raise Refused(400, f"Bad Request: message {name} is too long")
        if "text" in parameters and not parameters["text"]:
            raise Refused(400, "Bad Request: message text is empty")
        for row in parameters.get("reply_markup", {}).get("inline_keyboard", []):
            for key in row:
                if "callback_data" in key and not 1 <= len(key["callback_data"].encode()) <= 64:
                    raise Refused(400, "Bad Request: BUTTON_DATA_INVALID")

    async def getMe(self, _):
        me = {"id": int(self.token.split(":")[0]), "is_bot": True, "first_name": "Emulated", "username": "emulated_bot"}
        aiogram.types.User.model_validate(me)
        return me

    async def setWebhook(self, parameters):
        self.webhook = parameters
        return True

    async def deleteWebhook(self, _):
        self.webhook = {"url": ""}
        return True

    async def getWebhookInfo(self, _):
        info = {"url": self.webhook["url"], "has_custom_certificate": False, "pending_update_count": 0}
        aiogram.types.WebhookInfo.model_validate(info)
        return info

    async def getUpdates(self, parameters):
        if self.webhook["url"]:
            raise Refused(409, "Conflict: can't use getUpdates method while webhook is active")
        offset = parameters.get("offset", 0)
        self.updates = [update for update in self.updates if update["update_id"] >= offset]
        if not self.updates:
            self.told.clear()
            try:
                await asyncio.wait_for(self.told.wait(), parameters.get("timeout", 0))
            except TimeoutError:
                pass
        return self.updates

    async def getFile(self, parameters):
        found = self.files.get(parameters["file_id"])
        if found is None:
            raise Refused(400, "Bad Request: invalid file_id")
        path, content = found
        answer = {"file_id": parameters["file_id"], "file_unique_id": "u", "file_size": len(content), "file_path": path}
        aiogram.types.File.model_validate(answer)
        return answer

    async def download(self, request):
        if request.match_info["token"] != self.token:
            return web.Response(status=404)
        contents = dict(self.files.values())
        content = contents.get(request.match_info["path"])
        return web.Response(status=404) if content is None else web.Response(body=content)

    async def push(self, request):
        update = {"update_id": next(self.update_numbers)} | await request.json()
        try:
            validated(aiogram.types.Update, update)
        except Refused as refused:
            return web.Response(status=400, text=refused.description)
        if not self.webhook["url"]:
            self.updates.append(update)
            self.told.set()
            return web.json_response({"status": None, "body": None})
        headers = {}
        if secret := self.webhook.get("secret_token"):
            headers["X-Telegram-Bot-Api-Secret-Token"] = secret
        async with ClientSession() as session:
            async with session.post(self.webhook["url"], json=update, headers=headers) as answer:
                return web.json_response({"status": answer.status, "body": await answer.text()})

    async def put_file(self, request):
        file = await request.json()
        self.files[file["fileId"]] = (file["path"], file["content"].encode())
        return web.json_response({})

    async def log(self, _):
        return web.json_response(self.sent)


async def serve(args):
    bot = Bot(args.token)
    app = web.Application(client_max_size=64 * 2**20)
    app.add_routes(
        [
            web.post("/bot{token}/{method}", bot.call),
            web.get("/file/bot{token}/{path:.+}", bot.download),
            web.get("/_sent", bot.log),
            web.post("/_push", bot.push),
            web.post("/_file", bot.put_file),
        ]
    )
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", args.port)
    await site.start()
    print(json.dumps({"port": runner.addresses[0][1]}), flush=True)
    closed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch_stdin():
        while os.read(sys.stdin.fileno(), 4096):
            pass
        loop.call_soon_threadsafe(closed.set)

    threading.Thread(target=watch_stdin, daemon=True).start()
    await closed.wait()
    await runner.cleanup()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes any free one")
    parser.add_argument("--token", required=True)
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
