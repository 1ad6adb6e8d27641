// Uses a client generated from the OpenAPI document as an application would. Exits with an error if anything is not as documented.

import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import createClient from "openapi-fetch";
import { Webhook } from "standardwebhooks";
import type { components, paths, webhooks } from "./nuncio.js";

type Message = components["schemas"]["Message"];
type Event = components["schemas"]["Event"];
type Delivered = webhooks["message.delivered"]["post"]["requestBody"]["content"]["application/json"];

const baseUrl = process.env["NUNCIO_URL"] ?? assert.fail("NUNCIO_URL is not set");
const key = process.env["NUNCIO_KEY"] ?? assert.fail("NUNCIO_KEY is not set");
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
const to = "+12125550123";

type Request = { headers: IncomingHttpHeaders; body: string };

/** Listens for webhooks; `wait` resolves with the first that `is` accepts. */
async function listen() {
  const requests: Request[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      requests.push({ headers: request.headers, body });
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const wait = async (is: (request: Request) => boolean): Promise<Request> => {
    for (let tries = 0; tries < 300; tries++) {
      const found = requests.find(is);
      if (found) return found;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return assert.fail(`no such webhook; got ${JSON.stringify(requests)}`);
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, wait, close: () => server.close() };
}

async function setWebhook(url: string): Promise<string> {
  const senders = await client.GET("/v1/senders");
  const sender = senders.data?.items[0] ?? assert.fail(JSON.stringify(senders.error));
  const body = { webhookUrl: url, webhookEvents: ["message.delivered" as const] };
  const updated = await client.PATCH("/v1/senders/{id}", { params: { path: { id: sender.id } }, body });
  return updated.data?.webhook?.secret ?? assert.fail("the secret is shown when the webhook is first set");
}

async function send(text: string, idempotencyKey: string): Promise<Message> {
  const body = { to, text, metadata: { from: "typescript" } };
  const { data, error, response } = await client.POST("/v1/messages", { params: { header: { "Idempotency-Key": idempotencyKey } }, body });
  assert.equal(response.status, 202, JSON.stringify(error));
  assert.ok(data && "message" in data);
  return data.message;
}

/** A repeated key: the code tells which schema the body has. */
async function repeat(text: string, idempotencyKey: string) {
  const body = { to, text, metadata: { from: "typescript" } };
  const { error } = await client.POST("/v1/messages", { params: { header: { "Idempotency-Key": idempotencyKey } }, body });
  assert.ok(error);
  if (error.code === "idempotency_conflict" || error.code === "idempotency_key_reused") {
    return { code: error.code, original: error.message };
  }
  return assert.fail(JSON.stringify(error));
}

async function refuse(): Promise<void> {
  const { error } = await client.POST("/v1/messages", { body: { to: "nonsense", text: "x" } });
  assert.equal(error?.code, "invalid_request");
  if (error.code === "invalid_request") {
    assert.equal(error.details.errors?.[0]?.path, "to");
  }
  const missing = await client.GET("/v1/messages/{id}", { params: { path: { id: "msg_00000000000000000000000000" } } });
  assert.equal(missing.error?.code, "not_found");
}

async function listAll(): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null | undefined;
  do {
    const { data } = await client.GET("/v1/messages", { params: { query: { limit: 2, ...(cursor ? { cursor } : {}) } } });
    assert.ok(data);
    ids.push(...data.items.map((message) => message.id));
    cursor = data.nextCursor;
  } while (cursor);
  return ids;
}

const listener = await listen();
const secret = await setWebhook(listener.url);
const sent: Message[] = [];
for (const name of ["one", "two", "three"]) sent.push(await send(name, `ts-${name}`));
const [first] = sent;
assert.ok(first);
const same = await repeat("one", "ts-one");
assert.deepEqual([same.code, same.original.id], ["idempotency_conflict", first.id]);
const other = await repeat("another", "ts-one");
assert.deepEqual([other.code, other.original.id], ["idempotency_key_reused", first.id]);
await refuse();
assert.deepEqual(await listAll(), sent.map((message) => message.id).reverse());

const parse = (request: Request) => JSON.parse(request.body) as Event;
const posted = await listener.wait((request) => {
  const event = parse(request);
  return event.type === "message.delivered" && event.data.message.id === first.id;
});
const event = new Webhook(secret).verify(posted.body, posted.headers as Record<string, string>) as Delivered;
assert.equal(event.data.message.status, "delivered");
assert.throws(() => new Webhook(secret).verify(`${posted.body} `, posted.headers as Record<string, string>));
listener.close();
console.log("ok");
