// Goes through the pages of a fresh server in Chromium, as people do, and stops at the first thing that is not as it should be.
//
//   node browser.mjs URL FIRST_LINK TEST_KEY CHROMIUM PICTURES
//
// Every page is looked at by axe-core, wide and narrow, light and dark; PICTURES (a folder) gets a picture of each. Whatever the content
// security policy refuses and whatever a script throws counts as a fault.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [base, firstLink, key, executablePath, pictures] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
mkdirSync(pictures, { recursive: true });

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const faults = [];
const open = [];

/** A person's browser. */
async function person(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  open.push(page);
  page.on("pageerror", (error) => faults.push(`${page.url()}: ${error}`));
  page.on("console", (line) => {
    // A refused form is answered with 4xx, which Chromium reports as well.
    if (line.type() === "error" && !line.text().includes("the server responded with a status of 4")) faults.push(`${page.url()}: ${line.text()}`);
  });
  return page;
}

async function api(method, path, body) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const answer = await fetch(base + path, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer.json();
}

/** Looks at the page that is open: axe, pictures, and that nothing sticks out sideways. */
async function look(page, name) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 860 });
      const at = `${name}-${width}-${colorScheme}`;
      await page.screenshot({ path: `${pictures}/${at}.png`, fullPage: true });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) faults.push(`${at}: ${wide} px wider than the window`);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
      for (const { id, nodes } of violations) faults.push(`${at}: ${id}: ${nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
    }
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize({ width: 1280, height: 860 });
}

const go = (page, path) => page.goto(base + path);
const heading = (page) => page.locator("h1").innerText();

/** The first five minutes: own the server, send a message, watch it arrive without touching anything. */
async function firstRun() {
  const page = await person();
  await page.goto(firstLink);
  await look(page, "begin");
  await page.fill("[name=name]", "Acme");
  await page.fill("[name=email]", "owner@example.net");
  await page.fill("[name=password]", "correct horse battery");
  await page.click("button.go");
  await page.getByText("Test environment.").waitFor();
  await look(page, "home-empty");
  await go(page, "/messages");
  await look(page, "messages-empty");
  await page.getByRole("link", { name: "Send the first one" }).click();
  await page.fill("#to", "+34 600 111 222");
  await page.fill("[name=text]", "Your parcel is on its way");
  await page.click("button[value=check]");
  await page.getByText("If you send it now").waitFor();
  await look(page, "message-new");
  await page.click("button[value=send]");
  await page.getByText(/Delivered by/).first().waitFor();
  await look(page, "message");
  return page;
}

/** A list says that there is something new, and shows it when it is asked to. */
async function followed(page) {
  await go(page, "/messages");
  assert.equal(await page.locator("table.rows tbody tr").count(), 1);
  await api("POST", "/v1/messages", { to: "+34600111223", text: "مرحبا، طلبك في الطريق", metadata: { order: "1017" } });
  await page.getByRole("link", { name: "1 new. Show" }).click();
  await page.locator("table.rows tbody tr").nth(1).waitFor();
  await look(page, "messages");
  await page.keyboard.press("/");
  await page.keyboard.type("+34600111223");
  await page.keyboard.press("Enter");
  await page.waitForURL(/q=/);
  assert.equal(await page.locator("table.rows tbody tr").count(), 1);
}

/** Somebody writes, and is answered. */
async function conversation(page) {
  await api("POST", "/v1/sandbox/inbound", { channel: "sms", from: "+34600111222", text: "When does it come?" });
  await go(page, "/conversations");
  await look(page, "conversations");
  await page.locator("table.rows tbody a.to, main a[href^='/conversations/']").first().click();
  await page.getByText("When does it come?").first().waitFor();
  await page.fill("[name=text]", "Today, before noon.");
  await page.getByRole("button", { name: /Answer by/ }).click();
  await page.getByText("Today, before noon.").first().waitFor();
  // What comes shows by itself.
  await page.evaluate(() => document.activeElement?.blur());
  await api("POST", "/v1/sandbox/inbound", { channel: "sms", from: "+34600111222", text: "Thank you" });
  await page.getByText("Thank you").first().waitFor();
  await look(page, "conversation");
}

/** A broadcast from a file, from the first word to the last receipt. */
async function broadcast(page) {
  await go(page, "/broadcasts");
  await look(page, "broadcasts-empty");
  await go(page, "/broadcasts/new");
  await look(page, "broadcast-new");
  await page.fill("[name=name]", "Spring opening hours");
  await page.selectOption("[name=channel]", "sms");
  await page.fill("[name=text]", "Hello {{name}}, our shop opens at nine from Monday. Reply STOP to opt out.");
  await page.click("button.go");
  const rows = Array.from({ length: 40 }, (_, n) => `+346002${String(n).padStart(5, "0")},Person ${n}`);
  const buffer = Buffer.from(`phone,name\n${rows.join("\n")}\nnonsense,Nobody\n`);
  await page.setInputFiles("#file", { name: "people.csv", mimeType: "text/csv", buffer });
  await page.locator("form:has(#file) button").first().click();
  await page.getByText("40 of 41 rows added").waitFor();
  await look(page, "broadcast-draft");
  await page.getByRole("button", { name: /Review and send to 40/ }).click();
  await page.getByText("100 % done").waitFor();
  await page.getByRole("heading", { name: "By channel" }).waitFor();
  await look(page, "broadcast");
  await go(page, "/broadcasts");
  await look(page, "broadcasts");
}

/** A connection that cannot work says why, in words. */
async function connection(page) {
  await go(page, "/senders");
  await look(page, "senders");
  await page.locator("table.rows tbody a.to").first().click();
  await look(page, "sender");
}

/** A key is shown once, and works. */
async function keys(page) {
  await go(page, "/developers/keys");
  await page.fill("[name=name]", "Shop");
  await page.getByRole("button", { name: "Create key" }).click();
  const made = await page.locator("text=/svc_test_[A-Za-z0-9_-]+/").first().innerText();
  const answer = await fetch(`${base}/v1/me`, { headers: { authorization: `Bearer ${made.match(/svc_test_[A-Za-z0-9_-]+/)[0]}` } });
  assert.equal(answer.status, 200);
  await look(page, "keys");
  await go(page, "/developers/keys");
  assert.equal(await page.locator("text=/svc_test_[A-Za-z0-9_-]{20,}/").count(), 0, "a key is shown once");
}

/** A viewer looks and changes nothing; another project's page is not theirs either. */
async function viewer(page) {
  await go(page, "/settings/people");
  await page.fill("[name=email]", "viewer@example.net");
  await page.fill("[name=password]", "only here to look");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("cell", { name: "viewer@example.net" }).waitFor();
  await look(page, "people");
  const other = await person();
  await go(other, "/messages");
  await look(other, "sign-in");
  await other.fill("[name=email]", "viewer@example.net");
  await other.fill("[name=password]", "only here to look");
  await other.click("button.go");
  await other.waitForURL(`${base}/messages`);
  await go(other, "/messages/new");
  await other.fill("#to", "+34600111222");
  await other.fill("[name=text]", "May I?");
  const [answer] = await Promise.all([other.waitForResponse((answer) => answer.request().method() === "POST"), other.click("button[value=send]")]);
  assert.equal(answer.status(), 403);
  await look(other, "refused");
  await other.context().close();
}

/** A client goes through an invitation, in Spanish and on a phone. */
async function invitation(page) {
  await go(page, "/invitations");
  await page.fill("[name=clientName]", "Zapatos Ana");
  await page.getByRole("button", { name: "Make the link" }).click();
  const link = (await page.locator("main").innerHTML()).match(/\/invite\/[A-Za-z0-9_-]+/)[0];
  await look(page, "invitations");
  const client = await person({ locale: "es-ES", viewport: { width: 390, height: 860 } });
  await go(client, link);
  await look(client, "invite");
  await client.getByRole("button", { name: "Empezar" }).click();
  await client.fill("[name=email]", "ana@example.net");
  await client.fill("[name=phone]", "+34 600 111 333");
  await look(client, "invite-details");
  await client.getByRole("button", { name: "Continuar" }).click();
  const sent = await api("GET", "/v1/messages?to=%2B34600111333&limit=1");
  await client.fill("[name=code]", "000000");
  await client.getByRole("button", { name: "Continuar" }).click();
  await client.getByText("El código no es correcto.").first().waitFor();
  await look(client, "invite-code");
  await client.fill("[name=code]", sent.items[0].text.slice(0, 6));
  await client.getByRole("button", { name: "Continuar" }).click();
  await client.check("[name=agree]");
  await client.getByRole("button", { name: "Terminar" }).click();
  assert.equal(await heading(client), "Ya está todo");
  await client.context().close();
}

/** The same without scripts: sign in, send, see it. */
async function withoutScripts() {
  const page = await person({ javaScriptEnabled: false });
  await go(page, "/messages/new");
  await page.fill("[name=email]", "owner@example.net");
  await page.fill("[name=password]", "correct horse battery");
  await page.click("button.go");
  await page.fill("#to", "+34600111444");
  await page.fill("[name=text]", "Without scripts");
  await page.click("button[value=send]");
  await page.getByText("What happened").waitFor();
  await page.context().close();
}

/** The API reference calls an operation with the test key; the guide finds a word. */
async function reading() {
  const page = await person();
  await go(page, "/docs/");
  await page.locator(".opblock-tag").first().waitFor();
  await page.click(".btn.authorize");
  await page.fill(".modal-ux input", key);
  await page.click(".modal-btn.authorize");
  await page.click(".modal-ux .btn-done");
  await page.click("#operations-tag-Account");
  await page.click("#operations-Account-getMe .opblock-summary-control");
  await page.click("#operations-Account-getMe .execute");
  await page.locator(".live-responses-table .response-col_status").getByText("200").waitFor();
  await page.screenshot({ path: `${pictures}/reference.png` });
  await go(page, "/docs/guide/");
  await page.fill("#q", "idempotency");
  await page.locator("#found a").first().waitFor();
  await go(page, "/docs/guide/start/five-minutes.html");
  await look(page, "guide");
  await page.context().close();
}

async function everything() {
  const page = await firstRun();
  await followed(page);
  await conversation(page);
  await broadcast(page);
  await connection(page);
  await keys(page);
  await viewer(page);
  await invitation(page);
  const others = {
    home: "/", contacts: "/contacts", reviews: "/reviews", templates: "/templates", "template-new": "/templates/new", numbers: "/numbers",
    suppressions: "/suppressions", money: "/money", account: "/settings/account", "sender-new": "/senders/new",
  };
  for (const [name, path] of Object.entries(others)) {
    await go(page, path);
    await look(page, name);
  }
  await withoutScripts();
  await reading();
}

try {
  await everything();
} catch (error) {
  for (const page of open.filter((page) => !page.isClosed())) console.log(page.url(), await page.locator("body").innerText());
  throw error;
} finally {
  await browser.close();
}
assert.equal(faults.length, 0, faults.join("\n"));
console.log("ok");
