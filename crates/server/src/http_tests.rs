use axum::response::IntoResponse as _;
use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;

use super::*;

const MOMENT: Duration = Duration::from_millis(50);
/// More than the buffers of the kernel hold.
const MUCH: usize = 64 * 1024 * 1024;

struct Serving {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    http: JoinHandle<()>,
}

/// Turns all but a probe away on connections above the limit, as the API does.
async fn shell(request: Request<Body>, next: axum::middleware::Next) -> axum::response::Response {
    match request.extensions().get::<Spare>() {
        Some(Spare) if request.uri().path() != "/readyz" => axum::http::StatusCode::SERVICE_UNAVAILABLE.into_response(),
        _ => next.run(request).await,
    }
}

async fn serving(limits: Limits) -> Serving {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = axum::Router::new()
        .route("/peer", get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.ip().to_string() }))
        .route("/readyz", get(async || "ready"))
        .route("/much", get(async || vec![b'x'; MUCH]))
        .route("/never", get(std::future::pending::<()>))
        .layer(axum::middleware::from_fn(shell));
    let (stop, stopped) = watch::channel(false);
    let proxies = Proxies::parse(["127.0.0.9"].into_iter()).expect("an address");
    Serving { address, stop, http: tokio::spawn(serve(listener, router, limits, proxies, stopped)) }
}

/// A client at this address of the loopback network, so that several can be told apart.
async fn from(host: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((host, 0).into()).expect("an address");
    socket.connect(to).await.expect("a connection")
}

async fn says(to: SocketAddr, text: &str) -> TcpStream {
    let mut client = TcpStream::connect(to).await.expect("a connection");
    client.write_all(text.as_bytes()).await.expect("written");
    client
}

/// What a connection answers to `GET path`, and then ends.
async fn asks(mut client: TcpStream, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    let (mut answer, _) = (Vec::new(), client.write_all(request.as_bytes()).await);
    let _ = client.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// Whether the connection ends within a few seconds, however much there is to read at once.
async fn ends(client: &mut TcpStream) -> bool {
    tokio::time::timeout(Duration::from_secs(20), async { while client.read_u8().await.is_ok() {} }).await.is_ok()
}

#[test]
fn few_open_files_are_not_all_given_to_clients() {
    for files in [64, 128, 256, 1_024] {
        let limits = Limits::new(&ServerConfig::default(), files);
        assert!(limits.connections > 0 && limits.spare > 0 && limits.connections + limits.spare <= files * 5 / 8, "{files}: {limits:?}");
    }
}

#[tokio::test]
async fn who_never_ends_the_head_of_a_request_is_hung_up_on() {
    let Serving { address, stop: _stop, .. } = serving(Limits { idle: MOMENT, ..Limits::default() }).await;
    for beginning in ["", "P", "PRI * HTTP/2.0", "GET /peer HTTP/1.1\r\nhost: a\r\nx: "] {
        let mut answer = Vec::new();
        let _ = says(address, beginning).await.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{beginning:?}");
    }
    let Serving { address, stop: _stop, .. } = serving(Limits { idle: 60 * MOMENT, ..Limits::default() }).await;
    let mut answer = String::new();
    let client = &mut says(address, "GET /peer HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.read_to_string(&mut answer).await.expect("an answer, and then the end");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("127.0.0.1"), "{answer}");
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_the_end_and_a_request_does() {
    let Serving { address, stop, http } = serving(Limits::default()).await;
    let _idle = says(address, "").await;
    let _half_a_head = says(address, "GET /pe").await;
    let began = Instant::now();
    stop.send_replace(true);
    http.await.expect("it ends");
    assert!(began.elapsed() < FAREWELL, "{:?}", began.elapsed());

    let Serving { address, stop, mut http } = serving(Limits::default()).await;
    let mut client = says(address, "GET /peer HTTP/1.1\r\nhost: a\r\n\r\nGET /never HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.read_u8().await.expect("the first is answered, so the second is in flight");
    stop.send_replace(true);
    assert!(tokio::time::timeout(MOMENT, &mut http).await.is_err());
    http.abort();
    let mut rest = Vec::new();
    let _ = client.read_to_end(&mut rest).await; // this ends
}

#[tokio::test]
async fn connections_are_counted_in_all_and_by_address() {
    let Serving { address, stop: _stop, .. } = serving(Limits { connections: 3, per_address: 2, ..Limits::default() }).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = says(address, "GET /peer HTTP/1.1\r\nhost: a\r\n\r\n").await;
        client.read_u8().await.expect("an answer");
        held.push(client);
    }
    let here = || from([127, 0, 0, 1], address);
    assert!(asks(here().await, "/peer").await.starts_with("HTTP/1.1 503"), "two of one address");
    let third = asks(from([127, 0, 0, 2], address).await, "/peer").await;
    assert!(third.starts_with("HTTP/1.1 200") && third.ends_with("127.0.0.2"), "another address: {third}");
    let mut client = from([127, 0, 0, 2], address).await;
    client.write_all(b"GET /peer HTTP/1.1\r\nhost: a\r\n\r\n").await.expect("written");
    client.read_u8().await.expect("an answer");
    held.push(client);
    assert!(asks(from([127, 0, 0, 3], address).await, "/peer").await.starts_with("HTTP/1.1 503"), "three in all");

    // A flood that says nothing keeps no probe from being answered.
    let mut flood = Vec::new();
    for _ in 0..3 * SPARE {
        flood.push(here().await);
    }
    assert!(asks(here().await, "/readyz").await.ends_with("ready"));
    drop(held);
    while !asks(here().await, "/peer").await.starts_with("HTTP/1.1 200") {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_takes_nothing_of_an_answer_is_hung_up_on() {
    let limits = Limits { stall: 20 * MOMENT, connections: 1, ..Limits::default() };
    let Serving { address, stop: _stop, .. } = serving(limits).await;
    let mut client = says(address, "GET /much HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.read_u8().await.expect("it is answered, so the only place is taken");
    let is_free = async { while !asks(says(address, "").await, "/peer").await.starts_with("HTTP/1.1 200") {} };
    tokio::time::timeout(HEAD / 2, is_free).await.expect("its place becomes free");
    let mut got = Vec::new();
    let _ = client.read_to_end(&mut got).await;
    assert!(got.len() < MUCH, "cut off");

    // One that takes it, however slowly, gets it all.
    let limits = Limits { stall: 100 * MOMENT, ..Limits::default() };
    let Serving { address, stop: _stop, .. } = serving(limits).await;
    let mut client = says(address, "GET /much HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    let (slow_until, mut got, mut bytes) = (Instant::now() + limits.stall + 10 * MOMENT, 0, vec![0; MUCH / 256]);
    while let Ok(read @ 1..) = client.read(&mut bytes).await {
        got += read;
        if Instant::now() < slow_until {
            tokio::time::sleep(MOMENT).await;
        }
    }
    assert!(got > MUCH, "{got}");
}

#[tokio::test]
async fn a_proxy_tells_the_address_of_its_client() {
    let Serving { address, stop: _stop, .. } = serving(Limits::default()).await;
    for (host, client) in [([127, 0, 0, 9], "192.0.2.7"), ([127, 0, 0, 2], "127.0.0.2")] {
        let (mut connection, mut answer) = (from(host, address).await, String::new());
        let request = "GET /peer HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 192.0.2.7\r\nconnection: close\r\n\r\n";
        connection.write_all(request.as_bytes()).await.expect("written");
        connection.read_to_string(&mut answer).await.expect("read");
        assert!(answer.ends_with(client), "{answer}");
    }
}

/// A connection over HTTP/2 with this window for answers.
async fn http2(address: SocketAddr, window: u32) -> (h2::client::SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>) {
    let client = TcpStream::connect(address).await.expect("a connection");
    let (client, connection) = h2::client::Builder::new().initial_window_size(window).handshake(client).await.expect("a handshake");
    (client, tokio::spawn(connection))
}

fn request(path: &str) -> Request<()> {
    Request::get(format!("http://a{path}")).body(()).expect("a request")
}

#[tokio::test]
async fn http2_is_bounded_too() {
    let limits = Limits { stall: 4 * MOMENT, ..Limits::default() };
    let Serving { address, stop: _stop, .. } = serving(limits).await;
    // No window at all: pings are answered, and no answer is ever taken.
    let (client, connection) = http2(address, 0).await;
    let mut client = client.ready().await.expect("ready");
    let (answer, _) = client.send_request(request("/peer"), true).expect("sent");
    let answer = answer.await.expect("a head");
    assert_eq!((answer.status().as_u16(), client.current_max_send_streams()), (200, STREAMS as usize));
    let ended = tokio::time::timeout(Duration::from_secs(20), connection).await;
    assert!(ended.is_ok(), "a client that takes nothing is hung up on");

    // What is idle ends, and what is used does not.
    let Serving { address, stop: _stop, .. } = serving(Limits { idle: 60 * MOMENT, ..Limits::default() }).await;
    let (client, connection) = http2(address, 65_535).await;
    let mut client = client.ready().await.expect("ready");
    for _ in 0..3 {
        let (answer, _) = client.send_request(request("/peer"), true).expect("sent");
        let mut body = answer.await.expect("a head").into_body();
        assert_eq!(body.data().await.expect("data").expect("read"), "127.0.0.1");
        tokio::time::sleep(MOMENT).await;
    }
    let (never, _) = client.send_request(request("/never"), true).expect("sent");
    tokio::time::sleep(70 * MOMENT).await;
    assert!(!connection.is_finished(), "a request is in flight");
    drop(never);
    assert!(tokio::time::timeout(Duration::from_secs(20), connection).await.is_ok(), "idle");
}

#[tokio::test]
async fn a_head_without_end_is_not_kept() {
    let Serving { address, stop: _stop, .. } = serving(Limits::default()).await;
    let mut client = says(address, "GET /peer HTTP/1.1\r\nhost: a\r\nx: ").await;
    let head = vec![b'x'; 16 * 1024 * 1024];
    let _ = client.write_all(&head).await;
    assert!(ends(&mut client).await);
    let (client, _connection) = http2(address, 65_535).await;
    let mut client = client.ready().await.expect("ready");
    let large = Request::get("http://a/peer").header("x", "x".repeat(2 * HEAD_BYTES as usize)).body(()).expect("a request");
    let (answer, _) = client.send_request(large, true).expect("sent");
    assert!(answer.await.map_or(true, |answer| answer.status() == 431), "it is refused, or the connection ends");
}
