//! Clients that do not read, stop sending, send too much or never end: the server's memory stays bounded, and a well-behaved client is
//! hardly affected.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use nuncio_domain::Environment;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

use crate::http::Http;
use crate::server::{Install, Keys, Server};

/// Addresses of the hostile clients; the well-behaved one uses 127.0.0.1.
const HOSTILE: [[u8; 4]; 3] = [[127, 0, 0, 2], [127, 0, 0, 3], [127, 0, 0, 4]];
/// Duration of the attack.
const ATTACK: Duration = Duration::from_secs(20);
/// Maximum memory of the server, in MB.
const RESIDENT_MB: usize = 300;
/// Maximum time of a request beyond three times its normal one. Other heavy tests run at the same time and take turns with the server: beside
/// them, 155 ms were seen. A client that is not protected from the hostile ones waits for seconds.
const SLACK: Duration = Duration::from_millis(400);
const MB: usize = 1024 * 1024;

/// Connects from one of the hostile addresses.
async fn connect(n: usize, server: SocketAddr) -> Option<tokio::net::TcpStream> {
    Http::connect_from(HOSTILE[n % HOSTILE.len()], server).await.ok().map(Http::into_stream)
}

fn head(operation: &str, key: &str, length: usize) -> String {
    format!(
        "{operation} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// Requests large responses repeatedly without reading them.
async fn slow_reader(n: usize, server: SocketAddr, key: String) {
    let Some(mut stream) = connect(n, server).await else { return };
    for _ in 0..4 {
        let _ = stream.write_all(head("GET /v1/messages?limit=100", &key, 0).as_bytes()).await;
    }
    std::future::pending::<()>().await;
}

/// Sends most of a body at once, then nothing.
async fn slow_writer(n: usize, server: SocketAddr, key: String, operation: String) {
    loop {
        let Some(mut stream) = connect(n, server).await else { return };
        let sent = async {
            stream.write_all(head(&operation, &key, MB).as_bytes()).await?;
            stream.write_all(&vec![b' '; 9 * MB / 10]).await?;
            stream.read_u8().await
        };
        let _ = sent.await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Opens the maximum number of streams, each with an endless body, or without a window for the response.
async fn streams(n: usize, server: SocketAddr, key: String, path: String) {
    let Some(stream) = connect(n, server).await else { return };
    let window = if n.is_multiple_of(2) { 0 } else { 65_535 };
    let Ok((client, connection)) = h2::client::Builder::new().initial_window_size(window).handshake::<_, Bytes>(stream).await else {
        return;
    };
    let posting = async {
        let (mut client, mut bodies) = (client, Vec::new());
        for _ in 0..400 {
            let Ok(ready) = client.ready().await else { break };
            client = ready;
            let url = format!("http://a{}", if window == 0 { "/v1/messages?limit=100" } else { &path });
            let method = if window == 0 { "GET" } else { "POST" };
            let request = axum::http::Request::builder().method(method).uri(url).header("authorization", format!("Bearer {key}"));
            let Ok((answer, mut body)) = client.send_request(request.body(()).expect("a request"), window == 0) else { break };
            if window > 0 {
                body.reserve_capacity(MB);
                let _ = body.send_data(Bytes::from(vec![b' '; MB]), false);
            }
            bodies.push((answer, body));
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = connection => {}
        () = posting => {}
    }
}

/// Opens idle connections beyond the limit.
async fn flood(server: SocketAddr) {
    let mut held = Vec::new();
    for n in 0.. {
        if let Some(stream) = connect(n, server).await {
            held.push(stream);
        }
        if held.len() > 3_600 {
            held.drain(..1_200);
        }
        if n % 20 == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Sends a value of 50 MB where a few characters are expected.
async fn huge_values(n: usize, server: SocketAddr, key: String) {
    let body = json!({"to": "+34600111222", "text": "x", "channel": "voice", "voiceLanguage": "\u{1}".repeat(8 * MB)}).to_string();
    loop {
        let Some(mut stream) = connect(n, server).await else { return };
        let _ = stream.write_all(head("POST /v1/messages", &key, body.len()).as_bytes()).await;
        let _ = stream.write_all(body.as_bytes()).await;
        let mut answer = vec![0; 128 * 1024];
        let read = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut answer)).await;
        let shown =
            read.ok().and_then(Result::ok).map(|length| String::from_utf8_lossy(&answer[..length]).into_owned()).unwrap_or_default();
        assert!(!shown.contains(&"u{1}\\".repeat(200)), "{shown}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Returns the 99th percentile and the number of requests of a well-behaved client, measured until `done`.
async fn well_behaved(server: SocketAddr, key: &str, done: impl Fn(usize) -> bool) -> (Duration, usize) {
    let mut http = Http::connect(server).await.expect("it listens");
    let mut times = Vec::new();
    while !done(times.len()) {
        let began = Instant::now();
        let answer = match times.len() % 3 {
            0 => http.get(key, "/v1/me").await,
            1 => http.get(key, "/v1/contacts?limit=10").await,
            _ => http.ask(key, "POST /v1/introspect/email", &json!({"email": "a@example.org"})).await,
        };
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 200, "{answer:?}");
        times.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    times.sort();
    (times[(times.len() - 1) * 99 / 100], times.len())
}

/// Creates large pages to request, and a connection with a callback; returns its path.
async fn prepare(install: &Install, server: &Server, keys: &Keys) -> String {
    let mut http = Http::connect(server.address).await.expect("it listens");
    for n in 0..60 {
        let body = json!({"to": "a@example.org", "subject": format!("{n}"), "text": "x".repeat(30_000)}).to_string();
        assert_eq!(http.send(keys.of(Environment::Test), None, &body).await.expect("an answer").status, 202);
    }
    let settings = ["--setting", "url=http://127.0.0.1:9/cgi-bin/sendsms", "--setting", "username=nuncio"];
    let secrets = ["--secret", "password=p", "--secret", "callback_secret=a-word-of-our-own"];
    let mut arguments = vec!["connections", "set", "--channel", "sms", "--kind", "kannel"];
    arguments.extend(settings.into_iter().chain(secrets));
    let (status, connection) = install.run(&arguments).await;
    assert!(status.success(), "{connection}");
    format!("/providers/kannel/{}", connection["id"].as_str().expect("an id"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes half a minute and much of the machine"]
async fn heavy_hostile_clients_are_bounded() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("more open files");
    let folder = tempfile::tempdir().expect("a folder");
    let install = Install { data: folder.path().join("data"), database: String::new() };
    let keys = install.keys().await;
    let server = install.start(&[]).await;
    let callback = prepare(&install, &server, &keys).await;
    let (address, live, test) = (server.address, keys.of(Environment::Live).to_owned(), keys.of(Environment::Test).to_owned());
    let (quiet, requests) = well_behaved(address, &live, |count| count >= 300).await;
    let before = server.resident_mb();

    let mut hostile = JoinSet::new();
    for n in 0..60 {
        hostile.spawn(slow_reader(n, address, test.clone()));
        hostile.spawn(slow_writer(n, address, test.clone(), "POST /v1/messages".to_owned()));
        hostile.spawn(slow_writer(n, address, test.clone(), format!("POST {callback}")));
        hostile.spawn(slow_writer(n, address, test.clone(), "POST /providers/kannel/nonsense".to_owned()));
    }
    for n in 0..6 {
        hostile.spawn(streams(n, address, test.clone(), callback.clone()));
    }
    hostile.spawn(huge_values(0, address, test.clone()));
    hostile.spawn(flood(address));

    let (over, most) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let ended = Arc::clone(&over);
    let good = tokio::spawn(async move { well_behaved(address, &live, |_| ended.load(Ordering::Acquire)).await });
    let (began, mut probes) = (Instant::now(), 0);
    while began.elapsed() < ATTACK {
        most.fetch_max(server.resident_mb(), Ordering::AcqRel);
        // An operator, and a load balancer at a hostile address, can still see the server's status.
        if began.elapsed() > Duration::from_secs(1 + 4 * probes) {
            let mut probe = Http::connect_from(HOSTILE[0], address).await.expect("it listens");
            assert_eq!(probe.get("", "/readyz").await.expect("an answer").status, 200);
            let (status, _) = install.run(&["keys", "list"]).await;
            assert!(status.success());
            probes += 1;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    over.store(true, Ordering::Release);
    let (loud, served) = good.await.expect("it is served");
    let most = most.load(Ordering::Acquire);
    eprintln!("p99 {quiet:?} of {requests} before, {loud:?} of {served} meanwhile; {before} MB before, {most} MB at most; {probes} probes");
    assert!(most < RESIDENT_MB, "{most} MB");
    assert!(loud <= 3 * quiet + SLACK, "p99 {loud:?} where {quiet:?} is usual");
    assert!(probes >= 3 && served > 100);
    hostile.shutdown().await;
}
