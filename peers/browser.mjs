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
      const cut = await page.evaluate(() => [...document.querySelectorAll("th, td, .btn")]
        .filter((one) => one.checkVisibility() && getComputedStyle(one).overflowX === "visible" && one.scrollWidth > one.clientWidth + 1)
        .map((one) => `<${one.localName} class="${one.className}"> ${one.textContent.trim().slice(0, 60)}`));
      for (const one of cut) faults.push(`${at}: wider than its place: ${one}`);
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
  await page.fill("[name=project]", "Acme");
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
  // What is being written is measured in every pause.
  await page.fill("[name=text]", "Your parcel is on its way 🚚");
  await page.getByText("requires UCS-2").waitFor();
  await look(page, "message-new-ucs2");
  await page.fill("[name=text]", "Your parcel is on its way");
  await page.getByText("25 of 160 characters").waitFor();
  await page.click("button[value=send]");
  await page.getByText(/Delivered by/).first().waitFor();
  await look(page, "message");
  return page;
}

/** A list says that there is something new, and shows it when it is asked to. */
async function followed(page) {
  await go(page, "/messages#main");
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
  await page.getByRole("button", { name: /Reply by/ }).click();
  await page.getByText("Today, before noon.").first().waitFor();
  // What comes shows by itself, and the focus stays.
  await page.getByRole("link", { name: "Contact", exact: true }).focus();
  await api("POST", "/v1/sandbox/inbound", { channel: "sms", from: "+34600111222", text: "Thank you" });
  await page.getByText("Thank you").first().waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Contact");
  // What is being written stays, whatever comes and whatever key is pressed.
  await page.fill("[name=text]", "You are welcome");
  await api("POST", "/v1/sandbox/inbound", { channel: "sms", from: "+34600111222", text: "Is it blue?" });
  await page.getByRole("link", { name: "There is something new. Show" }).waitFor();
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("c");
  assert.equal(await page.inputValue("[name=text]"), "You are welcome");
  // It is still there after a look at another page.
  await page.getByRole("link", { name: "Contact", exact: true }).click();
  await page.waitForURL(/contacts/);
  await page.goBack();
  assert.equal(await page.inputValue("[name=text]"), "You are welcome");
  await page.fill("[name=text]", "");
  await page.evaluate(() => document.activeElement.blur());
  await page.getByText("Is it blue?").first().waitFor();
  // Another message of a person further down is announced.
  await api("POST", "/v1/sandbox/inbound", { channel: "sms", from: "+34600111299", text: "Hello?" });
  await go(page, "/conversations");
  assert.equal(await page.locator("table.rows tbody tr").count(), 2);
  await api("POST", "/v1/sandbox/inbound", { channel: "sms", from: "+34600111222", text: "I mean the parcel" });
  await page.getByRole("link", { name: "1 new. Show" }).click();
  await page.locator("table.rows tbody tr").first().getByText("+34600111222").waitFor();
  await page.locator("table.rows tbody a.to").first().click();
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
  const buffer = Buffer.from(`phone,nombre\n${rows.join("\n")}\nnonsense,Nobody\n`);
  const choose = () => page.setInputFiles("#file", { name: "people.csv", mimeType: "text/csv", buffer });
  await choose();
  await page.getByText("Other column names, national numbers").click();
  await page.fill("[name=columns]", "nombre:name");
  await page.getByRole("button", { name: "Preview its columns" }).click();
  await page.getByRole("heading", { name: "The columns of your file" }).waitFor();
  assert.equal(await page.getByText("No column fills").count(), 0);
  assert.equal(await page.inputValue("[name=columns]"), "nombre:name");
  await look(page, "broadcast-columns");
  await choose();
  await page.locator("form:has(#file) button").first().click();
  await page.getByText("40 of 41 rows added").waitFor();
  await look(page, "broadcast-draft");
  // What was entered in another form is not lost unasked.
  await page.fill("#text", "Hello {{name}}, we open at ten.");
  const send = (answer) => {
    page.once("dialog", (dialog) => dialog[answer]());
    return page.getByRole("button", { name: /Review and send to 40/ }).click();
  };
  await send("dismiss");
  assert.equal(await page.inputValue("#text"), "Hello {{name}}, we open at ten.");
  await send("accept");
  await page.getByText("100 % done").waitFor();
  await page.getByRole("heading", { name: "By channel" }).waitFor();
  await look(page, "broadcast");
  await page.getByRole("link", { name: "Recipients" }).click();
  await look(page, "broadcast-recipients");
  await go(page, "/broadcasts");
  await look(page, "broadcasts");
}

/** A connection that cannot work says why, in words. */
async function connection(page) {
  await go(page, "/senders");
  await look(page, "senders");
  await page.locator("table.rows tbody a.to").first().click();
  await look(page, "sender");
  // After a test of its webhook the page follows, although it has a box to tick.
  const own = new URL(page.url()).pathname;
  await go(page, `${own}?tested=yes`);
  await api("PATCH", `/v1${own}`, { name: "Acme shop" });
  await page.getByRole("heading", { name: "Acme shop" }).waitFor();
  await page.getByRole("link", { name: "WhatsApp profile" }).click();
  await look(page, "sender-profile");
  await page.getByRole("button", { name: "Live", exact: true }).click();
  await go(page, "/senders/new");
  await page.fill("[name=name]", "Acme, whose name is so long that no table and no heading has room for all of it");
  await page.click("main button.go");
  await page.waitForURL(/snd_/);
  const sender = page.url();
  await page.goto(`${sender}/channels/sms`);
  await look(page, "connection-kinds");
  await page.goto(`${sender}/channels/sms?kind=kannel`);
  await look(page, "connection");
  await page.goto(sender);
  await look(page, "sender-live");
  await go(page, "/");
  await look(page, "home-live");
  await page.getByRole("button", { name: "Test", exact: true }).click();
}

/** People: from a file, twice the same, long names and other scripts. */
async function people(page) {
  const long = "A person whose name has more words than any list has room for, and who insists on all of them";
  for (const [name, channel, identifier] of [["ليلى بنت عبد الله", "sms", "+34600333001"], [long, "sms", "+34600333002"],
    ["Ana Ruiz", "sms", "+34600333003"], ["Ana Ruiz", "email", "ana.ruiz.with.a.long.address@a-rather-long-domain.example.org"]]) {
    await api("POST", "/v1/contacts", { displayName: name, channels: [{ channel, identifier }], metadata: { plan: "gold" } });
  }
  await go(page, "/contacts");
  await page.setInputFiles("#file", { name: "people.csv", mimeType: "text/csv", buffer: Buffer.from("name,phone\nEva,+34600333004\nNobody,12\n") });
  await page.getByRole("button", { name: "Add people" }).click();
  await page.getByText("1 of 2 people are new").waitFor();
  await look(page, "contacts");
  await page.getByRole("link", { name: /Ana Ruiz/ }).first().click();
  await page.getByText("second contact of the same person").waitFor();
  await look(page, "contact");
  await page.getByRole("link", { name: "Compare" }).click();
  await look(page, "contact-merge");
  await page.getByRole("button", { name: "Merge them" }).click();
  await page.waitForURL(/contacts\/con_[a-z0-9]+$/);
  await page.getByRole("button", { name: "Do not contact" }).first().click();
  await page.getByText("Not to be contacted").waitFor();
  await look(page, "contact-merged");
  await go(page, `/contacts?q=${encodeURIComponent("ليلى")}`);
  await page.getByRole("link", { name: /ليلى/ }).click();
  await look(page, "contact-rtl");
}

/** Home shows what came up, without being asked again. */
async function home(page) {
  await go(page, "/");
  await page.getByText("Sent, by hour").waitFor();
  await api("POST", "/v1/messages", { to: "+12125550001", text: "This one fails" });
  await api("POST", "/v1/messages", { to: "+12125550008", text: "Did it go out?", onUnknown: "hold" });
  await page.getByText("waits for your decision").waitFor();
  await page.getByText("Show as a table").first().click();
  await look(page, "home");
}

/** The frequent tasks, each within three clicks from Home. Typing and keys are no clicks. */
async function tasks(page) {
  const done = async (task, most, ...steps) => {
    await go(page, "/");
    let clicks = 0;
    page.click_ = async (locator) => { clicks += 1; await locator.click(); };
    for (const step of steps) await step(page);
    assert.ok(clicks <= most, `${task}: ${clicks} clicks`);
  };
  const press = (name) => (page) => page.click_(page.getByRole("button", { name }).first());
  const follow = (name) => (page) => page.click_(page.getByRole("link", { name, exact: true }).first());
  const row = (page) => page.click_(page.locator("table.rows tbody a.to").first());
  const fill = (fields) => async (page) => { for (const [field, value] of Object.entries(fields)) await page.fill(`main [name=${field}]`, value); };
  const see = (text) => (page) => page.getByText(text).first().waitFor();
  const find = (text) => async (page) => { await page.keyboard.press("/"); await page.keyboard.type(text); await page.keyboard.press("Enter"); await page.waitForURL(/q=/); };

  await done("developer: send a message", 2, follow("New message"), fill({ to: "+34600111222", text: "Hi" }), press(/^Send/), see("Timeline"));
  await done("developer: make a key", 2, follow("Developers"), fill({ name: "Counted" }), press("Create key"), see(/svc_test_/));
  await done("developer: why a message failed", 2, find("+12125550001"), row, see("Failed."));
  await done("support: a person's messages", 0, find("+34600111222"), (page) => page.locator("table").getByText("Delivered").first().waitFor());
  await done("support: answer who wrote", 3, follow("Conversations"), row, fill({ text: "At four." }), press(/^Reply by/), see("At four."));
  await done("support: whether they opted out", 2, find("+34600111222"), row, follow("Contact"), see("May be contacted"));
  await done("support: note something", 3, find("+34600111222"), row, follow("Contact"), fill({ metadataName: "city", metadata: "Madrid" }), press("Save the field"),
    (page) => page.locator("main input[value=Madrid]").waitFor());
  const buffer = Buffer.from("phone\n+34600444001\n");
  await done("marketer: a broadcast from a file", 3, follow("New broadcast"), fill({ name: "Counted", text: "Hello from Acme. Reply STOP to opt out." }), press("Create the draft"),
    (page) => page.setInputFiles("#file", { name: "people.csv", mimeType: "text/csv", buffer }), press("Add recipients"), see("1 of 1 rows added"));
  await done("marketer: how it went", 2, follow("Broadcasts"), (page) => page.click_(page.getByRole("link", { name: "Spring opening hours" }).first()), see("100 % done"));
  await done("marketer: who was not reached", 3, follow("Broadcasts"), (page) => page.click_(page.getByRole("link", { name: "Spring opening hours" }).first()), follow("Recipients"), see("+34600200039"));
  await done("marketer: once more", 3, follow("Broadcasts"), (page) => page.click_(page.getByRole("link", { name: "Spring opening hours" }).first()), press("Duplicate"), see("Recipients from a file"));
  await done("operator: what is wrong", 0, see("waits for your decision"));
  await done("operator: decide", 2, follow("Decide"), press("It was sent"), see("Timeline"));
  await done("operator: a connection", 3, follow("Senders"), row, (page) => page.click_(page.locator("main a[href*='/channels/']").first()), see(/Kind of provider|Test/));
}

/** Prices come from a file; what is sent afterwards is in the ledger. */
async function money(page) {
  await go(page, "/money");
  const csv = (lines) => ({ name: "prices.csv", mimeType: "text/csv", buffer: Buffer.from(`channel,country,unit,provider,fee\n${lines}\n`) });
  await page.setInputFiles("#file", csv("fax,Spain,page,-1,0"));
  await page.getByRole("button", { name: "Import prices" }).click();
  await page.getByText("Nothing was imported").waitFor();
  await look(page, "money-invalid");
  await page.setInputFiles("#file", csv("sms,*,segment,0.05,0.005\nsms,ES,segment,0.032,0.005"));
  await page.getByRole("button", { name: "Import prices" }).click();
  await page.getByText("2 prices imported").waitFor();
  await look(page, "money");
  await api("POST", "/v1/messages", { to: "+34600111222", channel: "sms", text: "Priced" });
  await go(page, "/money/ledger");
  await page.getByRole("cell", { name: "Reserved", exact: true }).first().waitFor();
  await look(page, "ledger");
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
  await page.getByRole("button", { name: "Role…" }).click();
  await page.getByRole("heading", { name: "Role of viewer@example.net" }).waitFor();
  await look(page, "people-role");
  await page.getByRole("button", { name: "Go back" }).first().click();
  const other = await person();
  await go(other, "/messages");
  await look(other, "sign-in");
  await other.fill("[name=email]", "viewer@example.net");
  await other.fill("[name=password]", "only here to look");
  await other.click("button.go");
  await other.waitForURL(`${base}/messages`);
  assert.equal(await other.getByRole("link", { name: "New message" }).count(), 0);
  const answer = await other.goto(`${base}/messages/new`);
  assert.equal(answer.status(), 403);
  await look(other, "refused");
  await other.context().close();
}

/** The project gets a colour, which its invitations show. */
async function colour(page) {
  await go(page, "/settings/project");
  await page.check("[name=look][value=own]");
  await page.fill("[name=colour]", "#ffd500");
  await page.locator("#live").getByText("#ffd500").waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator("#live").getByText("#ffd500").waitFor();
  await look(page, "project");
}

/** A second project is created, and the navigation leads back to the first. */
async function projects(page) {
  await go(page, "/settings/project");
  await page.getByRole("link", { name: "All projects" }).click();
  await page.fill("[name=name]", "مشروع Tienda");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.locator("summary.project").click();
  await look(page, "projects-switch");
  await page.getByRole("link", { name: "All projects" }).click();
  await look(page, "projects");
  await page.locator("summary.project").click();
  await page.locator(".switch button").first().click();
  await page.locator("nav summary", { hasText: "Acme" }).waitFor();
}

/** A client goes through an invitation, in Spanish and on a phone. */
async function invitation(page) {
  await go(page, "/invitations");
  await page.fill("[name=clientName]", "Zapatos Ana");
  await page.getByRole("button", { name: "Create the link" }).click();
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
  await page.getByText("Timeline").waitFor();
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
  // Examples of optional parameters are shown, not sent.
  await page.click("#operations-tag-Contacts");
  await page.click("#operations-Contacts-listContacts .opblock-summary-control");
  await page.locator("#operations-Contacts-listContacts").getByText("Example: metadata[plan]=pro").waitFor();
  await page.click("#operations-Contacts-listContacts .execute");
  await page.locator("#operations-Contacts-listContacts .request-url").getByText(/\/v1\/contacts$/).waitFor();
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
  await people(page);
  await home(page);
  await tasks(page);
  await keys(page);
  await money(page);
  await viewer(page);
  await colour(page);
  await projects(page);
  await invitation(page);
  const others = {
    reviews: "/reviews", templates: "/templates", "template-new": "/templates/new", numbers: "/numbers",
    suppressions: "/suppressions", "messages-none": "/messages?q=no+such+word", account: "/settings/account", "sender-new": "/senders/new",
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
