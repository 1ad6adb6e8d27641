//! The pool, against servers that speak TLS.

use std::sync::Mutex;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::*;

const AUTHORITY: &[u8] = include_bytes!("../../channels/smtp/tests/keys/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../channels/smtp/tests/keys/server.pem");
const KEY: &[u8] = include_bytes!("../../channels/smtp/tests/keys/server.key");
const SELF_SIGNED: (&[u8], &[u8]) = (include_bytes!("../tests/keys/self-signed.pem"), include_bytes!("../tests/keys/self-signed.key"));
const LIMITS: FetchLimits = FetchLimits { max_bytes: 1000, timeout: Duration::from_secs(20) };

/// What was agreed on, for each connection that was taken.
type Agreed = Arc<Mutex<Vec<String>>>;

/// A server that offers those protocols, by ALPN, and answers `yes` to everything.
async fn serve(protocols: &[&str]) -> (String, Agreed) {
    serve_as((CERTIFICATE, KEY), protocols).await
}

async fn serve_as((certificate, key): (&[u8], &[u8]), protocols: &[&str]) -> (String, Agreed) {
    crate::init_tls();
    let certificate = CertificateDer::from_pem_slice(certificate).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key).unwrap();
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let agreed = Agreed::default();
    let log = agreed.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let protocol = String::from_utf8_lossy(stream.get_ref().1.alpn_protocol().unwrap_or_default()).into_owned();
            log.lock().unwrap().push(protocol.clone());
            tokio::spawn(async move { if protocol == "h2" { http2(stream).await } else { http1(stream).await } });
        }
    });
    (url, agreed)
}

async fn http2(stream: TlsStream<TcpStream>) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        let mut body = respond.send_response(http::Response::new(()), false).unwrap();
        body.send_data("yes".into(), true).unwrap();
    }
}

async fn http1(mut stream: TlsStream<TcpStream>) {
    let mut request = Vec::new();
    while stream.read_buf(&mut request).await.is_ok_and(|read| read > 0) {
        if request.ends_with(b"\r\n\r\n") {
            request.clear();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes").await.unwrap();
        }
    }
}

/// As any other, but that it trusts the test's authority.
fn client() -> Client {
    crate::init_tls();
    let policy = Arc::new(GuardPolicy { allow_loopback: true, ..GuardPolicy::default() });
    let authority = reqwest::Certificate::from_pem(AUTHORITY).unwrap();
    let lookups = Lookups::new();
    Client { http: builder(&policy, &lookups).tls_certs_only([authority]).build().unwrap(), policy, lookups }
}

async fn ask(client: &Client, url: &str) {
    let answer = client.request(Method::GET, url, HeaderMap::new(), Vec::new(), LIMITS).await.unwrap();
    assert_eq!((answer.status, answer.body), (StatusCode::OK, b"yes".to_vec()));
}

#[tokio::test]
async fn http2_is_spoken_where_it_is_offered_over_one_connection() {
    let (url, agreed) = serve(&["h2", "http/1.1"]).await;
    let client = client();
    ask(&client, &url).await;
    let mut asking = JoinSet::new();
    for _ in 0..20 {
        let (client, url) = (client.clone(), url.clone());
        asking.spawn(async move { ask(&client, &url).await });
    }
    asking.join_all().await;
    assert_eq!(*agreed.lock().unwrap(), ["h2"]);
}

#[tokio::test]
async fn a_connection_is_used_again_where_http2_is_not_offered() {
    let (url, agreed) = serve(&["http/1.1"]).await;
    let client = client();
    for _ in 0..5 {
        ask(&client, &url).await;
    }
    assert_eq!(*agreed.lock().unwrap(), ["http/1.1"]);
}

#[tokio::test]
async fn a_certificate_that_cannot_be_trusted_is_named_in_words() {
    let (self_signed, _) = serve_as(SELF_SIGNED, &[]).await;
    let (unknown, _) = serve(&[]).await;
    let strict = Client::new(GuardPolicy { allow_loopback: true, ..GuardPolicy::default() }).unwrap();
    for (client, url, words) in [
        (client(), self_signed, "its TLS certificate is self-signed"),
        (strict, unknown, "its TLS certificate, or one between it and its root, is from no authority that this server trusts"),
    ] {
        let error = client.request(Method::GET, &url, HeaderMap::new(), Vec::new(), LIMITS).await.unwrap_err();
        assert_eq!(error, FetchError::Unreachable(format!("127.0.0.1: {words}")));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_never_connected_did_not_leave() {
    // The system accepts the connection, but the handshake gets no response.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let client = client();
    for (seconds, connecting) in [(1, Duration::from_millis(500)), (10, Duration::from_secs(5)), (60, Duration::from_secs(10))] {
        let limits = FetchLimits { timeout: Duration::from_secs(seconds), ..LIMITS };
        let error = client.request(Method::POST, &url, HeaderMap::new(), b"once".to_vec(), limits).await.unwrap_err();
        assert_eq!(error, FetchError::Unreachable(format!("127.0.0.1: no connection within {connecting:?}")));
        assert!(!error.may_have_left());
    }
}

#[tokio::test]
async fn a_server_without_tls_is_reported_as_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let error = client().request(Method::GET, &url, HeaderMap::new(), Vec::new(), LIMITS).await.unwrap_err();
    assert_eq!(error, FetchError::Unreachable("127.0.0.1: it does not speak TLS; use http://".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_large_body_has_more_time() {
    // A server that takes the connection and then neither reads nor responds.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let client = client();
    for (bytes, seconds) in [(0, 20), (1_000, 20), (40 << 20, 20 + 320)] {
        let began = tokio::time::Instant::now();
        let error = client.request(Method::POST, &url, HeaderMap::new(), vec![0; bytes], LIMITS).await.unwrap_err();
        assert_eq!((error, began.elapsed().as_secs()), (FetchError::Timeout, seconds));
    }
}
