//! A stand-in for nuncio in the benchmark's own tests: implements the parts of the command line and the API that the benchmark uses, keeps
//! messages in memory, and syncs a file for each. `STAND_IN_FAULT` causes a fault that the audit must detect (`lose`, `double`,
//! `undelivered`, `lose_mail`, `lose_sms`, `refuse`).

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, bail};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, patch, post};
use axum::{Json, Router};
use clap::Parser;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Parser)]
#[command(version)]
enum Command {
    Serve(Serve),
    #[command(subcommand)]
    Keys(Keys),
    #[command(subcommand)]
    Connections(Connections),
}

#[derive(clap::Args)]
struct Serve {
    #[arg(long)]
    data: PathBuf,
    #[arg(long)]
    database: Option<String>,
    #[arg(long)]
    listen: SocketAddr,
}

#[derive(Parser)]
enum Keys {
    Create(Key),
}

#[derive(clap::Args)]
struct Key {
    #[arg(long)]
    data: PathBuf,
    #[arg(long)]
    database: Option<String>,
    #[arg(long)]
    name: String,
    #[arg(long, value_parser = ["test", "live"])]
    env: String,
    #[arg(long)]
    json: bool,
}

#[derive(Parser)]
enum Connections {
    Set(Connection),
}

#[derive(clap::Args)]
struct Connection {
    #[arg(long)]
    data: PathBuf,
    #[arg(long)]
    database: Option<String>,
    #[arg(long)]
    env: String,
    #[arg(long)]
    channel: String,
    #[arg(long)]
    kind: String,
    #[arg(long)]
    setting: Vec<String>,
    #[arg(long)]
    secret: Vec<String>,
}

const KEY: &str = "svc_stand_in";

#[tokio::main]
async fn main() -> Result<()> {
    match Command::parse() {
        Command::Serve(serve) => run(serve).await,
        Command::Keys(Keys::Create(key)) => {
            fs::write(key.data.join("env"), &key.env)?;
            println!("{}", json!({"id": "key_1", "key": KEY}));
            Ok(())
        }
        Command::Connections(Connections::Set(connection)) => {
            let value = |name: &str| {
                let found = connection.setting.iter().find_map(|s| s.strip_prefix(name));
                found.with_context(|| format!("no setting {name}"))
            };
            let address = format!("{}:{}", value("host=")?, value("port=")?);
            fs::write(connection.data.join(&connection.kind), address).map_err(Into::into)
        }
    }
}

struct Server {
    fault: String,
    state: Mutex<Store>,
}

struct Store {
    messages: Vec<(String, &'static str)>,
    file: File,
    smtp: Option<BufReader<TcpStream>>,
    smpp: Option<TcpStream>,
    webhook: Option<String>,
}

async fn run(serve: Serve) -> Result<()> {
    let file = File::create(serve.data.join("log"))?;
    let store = Store { messages: Vec::new(), file, smtp: connect(&serve.data)?, smpp: bind(&serve.data)?, webhook: None };
    let fault = std::env::var("STAND_IN_FAULT").unwrap_or_default();
    let server = Arc::new(Server { fault, state: Mutex::new(store) });
    let router = Router::new()
        .route("/readyz", get(async || "ready"))
        .route("/metrics", get(metrics))
        .route("/v1/messages", post(send).get(list))
        .route("/v1/messages/batch", post(send_batch))
        .route("/v1/senders", get(async || Json(json!({"items": [{"id": "snd_1", "isDefault": true}]}))))
        .route("/v1/senders/snd_1", patch(subscribe))
        .with_state(server);
    let listener = tokio::net::TcpListener::bind(serve.listen).await?;
    let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        ended = axum::serve(listener, router) => ended.map_err(Into::into),
        _ = term.recv() => Ok(()),
    }
}

fn connect(data: &Path) -> Result<Option<BufReader<TcpStream>>> {
    let Ok(address) = fs::read_to_string(data.join("smtp")) else {
        return Ok(None);
    };
    let mut smtp = BufReader::new(TcpStream::connect(address)?);
    expect(&mut smtp, "220")?;
    smtp.get_mut().write_all(b"HELO stand-in\r\n")?;
    expect(&mut smtp, "250")?;
    Ok(Some(smtp))
}

fn bind(data: &Path) -> Result<Option<TcpStream>> {
    let Ok(address) = fs::read_to_string(data.join("smpp")) else {
        return Ok(None);
    };
    let mut smpp = TcpStream::connect(address)?;
    exchange(&mut smpp, 0x09, b"bench\0bench\0\0\x34\0\0\0")?;
    Ok(Some(smpp))
}

fn text(smpp: &mut TcpStream, text: &str) -> Result<()> {
    let fields = b"\0\x01\x0134600000000\0\x01\x0134610000000\0\0\0\0\0\0\0\0\0\0";
    exchange(smpp, 0x04, &[&fields[..], &[text.len() as u8], text.as_bytes()].concat())
}

/// Sends an SMPP PDU and reads its response.
fn exchange(smpp: &mut TcpStream, command: u32, body: &[u8]) -> Result<()> {
    let head = [16 + body.len() as u32, command, 0, 1].map(u32::to_be_bytes).concat();
    smpp.write_all(&[&head, body].concat())?;
    let mut head = [0; 16];
    smpp.read_exact(&mut head)?;
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let mut rest = vec![0; word(0) as usize - 16];
    smpp.read_exact(&mut rest)?;
    if word(8) == 0 { Ok(()) } else { bail!("SMPP: status {}", word(8)) }
}

async fn subscribe(State(server): State<Arc<Server>>, Json(body): Json<Value>) -> StatusCode {
    let url = body["webhookUrl"].as_str().unwrap_or_default();
    server.state.lock().expect("no panic holds it").webhook = Some(url.trim_start_matches("http://").trim_end_matches('/').to_owned());
    StatusCode::OK
}

/// Posts a webhook.
fn post_webhook(address: &str, n: usize) -> Result<()> {
    let mut hook = TcpStream::connect(address)?;
    write!(hook, "POST / HTTP/1.1\r\nwebhook-id: {n}\r\ncontent-length: 0\r\n\r\n")?;
    Ok(hook.read_exact(&mut [0; 12])?)
}

fn expect(smtp: &mut BufReader<TcpStream>, code: &str) -> Result<()> {
    let mut line = String::new();
    smtp.read_line(&mut line)?;
    if line.starts_with(code) { Ok(()) } else { bail!("SMTP: {line}") }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Send {
    to: String,
    channel: String,
    text: String,
    subject: Option<String>,
    idempotency_key: Option<String>,
}

async fn send(State(server): State<Arc<Server>>, Json(body): Json<Send>) -> Response {
    if server.fault == "refuse" {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let result = tokio::task::block_in_place(|| accept(&server, &body));
    match result {
        Ok(id) => (StatusCode::ACCEPTED, Json(json!({"message": {"id": id, "to": body.to}}))).into_response(),
        Err(e) => (StatusCode::INTERNAL_SERVER_ERROR, e.to_string()).into_response(),
    }
}

#[derive(Deserialize)]
struct SendBatch {
    messages: Vec<Send>,
}

async fn send_batch(State(server): State<Arc<Server>>, Json(body): Json<SendBatch>) -> Response {
    let results: Result<Vec<Value>> = tokio::task::block_in_place(|| {
        let each = |one: &Send| Ok(json!({"status": 202, "message": {"id": accept(&server, one)?}}));
        body.messages.iter().map(each).collect()
    });
    match results {
        Ok(results) => Json(json!({"results": results})).into_response(),
        Err(e) => (StatusCode::INTERNAL_SERVER_ERROR, e.to_string()).into_response(),
    }
}

fn accept(server: &Server, body: &Send) -> Result<String> {
    let mut store = server.state.lock().expect("no panic holds it");
    let n = store.messages.len();
    let id = format!("msg_{n:026}");
    store.file.write_all(body.text.as_bytes())?;
    store.file.sync_data()?;
    let faulty = n == 7;
    let fault = if faulty { &*server.fault } else { "" };
    if body.channel == "email" && fault != "lose_mail" {
        mail(store.smtp.as_mut().context("no SMTP connection")?, body)?;
    }
    if body.channel == "sms" && fault != "lose_sms" {
        if let Some(smpp) = &mut store.smpp {
            text(smpp, &body.text)?;
        }
        if let Some(address) = &store.webhook {
            post_webhook(address, n)?;
        }
    }
    let last = if fault == "undelivered" {
        "sending"
    } else if body.channel == "email" {
        "sent"
    } else {
        "delivered"
    };
    // A wrong id replaces the lost one, so that the totals still match.
    let kept = if fault == "lose" { "msg_stranger".to_owned() } else { id.clone() };
    store.messages.push((kept.clone(), last));
    if fault == "double" {
        store.messages.push((kept, last));
    }
    Ok(id)
}

fn mail(smtp: &mut BufReader<TcpStream>, body: &Send) -> Result<()> {
    let Send { to, text, subject, idempotency_key, .. } = body;
    let subject = subject.as_deref().unwrap_or_default();
    let key = idempotency_key.as_deref().unwrap_or_default();
    let mail =
        format!("MAIL FROM:<bench@example.org>\r\nRCPT TO:<{to}>\r\nDATA\r\nSubject: {subject}\r\nX-Key: {key}\r\n\r\n{text}\r\n.\r\n");
    smtp.get_mut().write_all(mail.as_bytes())?;
    ["250", "250", "354", "250"].into_iter().try_for_each(|code| expect(smtp, code))
}

async fn metrics(State(server): State<Arc<Server>>) -> String {
    let store = server.state.lock().expect("no panic holds it");
    let count = |status| store.messages.iter().filter(|(_, s)| *s == status).count();
    format!(
        "nuncio_messages_accepted_total {}\n\
         nuncio_messages_settled_total{{status=\"delivered\"}} {}\n\
         nuncio_messages_settled_total{{status=\"sent\"}} {}\n",
        store.messages.len(),
        count("delivered"),
        count("sent")
    )
}

#[derive(Deserialize)]
struct List {
    limit: usize,
    cursor: Option<usize>,
}

async fn list(State(server): State<Arc<Server>>, Query(list): Query<List>) -> Json<Value> {
    let store = server.state.lock().expect("no panic holds it");
    let start = list.cursor.unwrap_or(0);
    let end = store.messages.len().min(start + list.limit);
    let rows = store.messages[start..end].iter();
    let items: Vec<Value> = rows.map(|(id, status)| json!({"id": id, "status": status})).collect();
    let next = (end < store.messages.len()).then(|| end.to_string());
    Json(json!({"items": items, "nextCursor": next}))
}
