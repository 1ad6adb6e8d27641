//! The client against a small server on the loopback interface, and the address rules.

mod addresses;
mod server;

use std::time::Duration;

use nuncio_net::header::{HeaderMap, HeaderValue, USER_AGENT};
use nuncio_net::{Client, FetchError, FetchLimits, GuardPolicy, Method};
use server::Server;

const LIMITS: FetchLimits = FetchLimits { max_bytes: 1000, timeout: Duration::from_secs(20) };

/// Short, for servers that never answer.
const IMPATIENT: FetchLimits = FetchLimits { max_bytes: 1000, timeout: Duration::from_secs(3) };

fn client(policy: GuardPolicy) -> Client {
    Client::new(policy).unwrap()
}

/// Permits the test server: plain http on loopback.
fn local() -> Client {
    client(GuardPolicy { allow_http: true, allow_loopback: true, ..GuardPolicy::default() })
}

/// Permits 127.0.0.1 and, unlike `local`, no other loopback address.
fn one_address() -> Client {
    client(GuardPolicy { allow_http: true, allow_networks: vec!["127.0.0.1/32".parse().unwrap()], ..GuardPolicy::default() })
}

fn ok(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

fn status(code: u16) -> String {
    format!("HTTP/1.1 {code} Some\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

fn chunked(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n")
}

/// The host whose refusal ended the call, and the setting named.
fn refusal<T: std::fmt::Debug>(result: Result<T, FetchError>) -> (String, Option<&'static str>) {
    match result {
        Err(FetchError::Refused(refused)) => (refused.host().to_owned(), refused.setting()),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn fetches_a_body() {
    let server = Server::answering(vec![ok("hello")]).await;
    let url = server.url("/file?name=a");

    let fetched = local().fetch(&url, LIMITS).await.unwrap();

    assert_eq!(fetched.bytes, b"hello");
    assert_eq!(fetched.content_type.as_deref(), Some("text/plain"));
    assert_eq!(fetched.final_url.as_str(), url);
    let request = &server.requests()[0];
    assert!(request.starts_with("GET /file?name=a HTTP/1.1\r\n"));
    let agent = format!("user-agent: nuncio/{}\r\n", env!("CARGO_PKG_VERSION"));
    assert!(request.contains(&agent), "{request}");
}

#[tokio::test]
async fn a_body_is_fetched_as_it_is_or_not_at_all() {
    let encoded = |encoding: &str| ok("x").replace("connection:", &format!("content-encoding: {encoding}\r\nconnection:"));
    for (response, error) in [
        (encoded("identity"), None),
        (encoded("gzip"), Some(FetchError::Encoded("gzip".into()))),
        (encoded("identity\r\ncontent-encoding: BR"), Some(FetchError::Encoded("BR".into()))),
        (status(204), Some(FetchError::Status(204))),
        (status(206), Some(FetchError::Status(206))),
    ] {
        let server = Server::answering(vec![response.clone(), response]).await;
        assert_eq!(local().fetch(&server.url("/"), LIMITS).await.err(), error);
        assert_eq!(local().open(&server.url("/"), LIMITS.timeout).await.err(), error);
        assert!(server.requests()[0].contains("accept-encoding: identity\r\n"));
    }
}

#[tokio::test]
async fn http_is_refused_by_default() {
    let server = Server::answering(vec![ok("")]).await;
    let refused = refusal(client(GuardPolicy::default()).fetch(&server.url("/"), LIMITS).await);
    assert_eq!(refused, ("127.0.0.1".into(), Some("net.allow_loopback")));
    assert_eq!(server.connections(), 0);
    let policy = GuardPolicy { allow_loopback: true, ..GuardPolicy::default() };
    let elsewhere = refusal(client(policy.clone()).fetch("http://example.com/", LIMITS).await);
    assert_eq!(elsewhere, ("example.com".into(), Some("net.allow_http")));
    client(policy).fetch(&server.url("/"), LIMITS).await.expect("it crosses no network");
}

#[tokio::test]
async fn a_forbidden_address_is_refused_before_connecting() {
    let server = Server::answering(vec![ok(""), ok("")]).await;
    let client = client(GuardPolicy { allow_http: true, ..GuardPolicy::default() });

    let fetch = client.fetch(&server.url("/"), LIMITS).await;
    assert_eq!(refusal(fetch), ("127.0.0.1".into(), Some("net.allow_loopback")));

    let post = client.request(Method::POST, &server.url("/"), HeaderMap::new(), vec![1], LIMITS).await;
    assert_eq!(refusal(post), ("127.0.0.1".into(), Some("net.allow_loopback")));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_name_that_resolves_to_loopback_is_refused() {
    let server = Server::answering(vec![ok("by name")]).await;
    let url = server.url("/").replace("127.0.0.1", "localhost");
    let strict = client(GuardPolicy { allow_http: true, ..GuardPolicy::default() });

    let refused = refusal(strict.fetch(&url, LIMITS).await);
    assert_eq!(refused, ("localhost".into(), Some("net.allow_loopback")));
    assert_eq!(server.connections(), 0);

    let fetched = local().fetch(&url, LIMITS).await.unwrap();
    assert_eq!(fetched.bytes, b"by name");
}

#[tokio::test]
async fn redirects_are_followed() {
    let there = Server::answering(vec![ok("there")]).await;
    let here = Server::answering(vec![redirect("next"), redirect(&there.url("/x"))]).await;

    let fetched = local().fetch(&here.url("/dir/a"), LIMITS).await.unwrap();

    assert_eq!(fetched.bytes, b"there");
    assert_eq!(fetched.final_url.as_str(), there.url("/x"));
    assert!(here.requests()[1].starts_with("GET /dir/next "));
}

#[tokio::test]
async fn a_redirect_to_a_forbidden_place_is_refused() {
    let secret = Server::answering(vec![ok("secret")]).await;
    let by_name = secret.url("/").replace("127.0.0.1", "127.0.0.2");
    for (target, host, setting) in [
        ("http://169.254.169.254/latest/meta-data/", "169.254.169.254", Some("net.allow_networks")),
        ("//[::ffff:127.0.0.1]/", "[::ffff:7f00:1]", Some("net.allow_networks")),
        ("http://0x7f.2/", "127.0.0.2", Some("net.allow_loopback")),
        (by_name.as_str(), "127.0.0.2", Some("net.allow_loopback")),
        ("http://user@127.0.0.1/", "127.0.0.1", None),
        ("file:///etc/passwd", "(no host)", None),
    ] {
        let server = Server::answering(vec![redirect(target)]).await;
        let result = one_address().fetch(&server.url("/"), LIMITS).await;
        assert_eq!(refusal(result), (host.to_owned(), setting), "{target}");
    }
    assert_eq!(secret.connections(), 0);
}

#[tokio::test]
async fn five_redirects_are_followed_and_a_sixth_is_not() {
    let mut script = vec![redirect("/again"); 5];
    script.push(ok("at last"));
    let server = Server::answering(script).await;
    let fetched = local().fetch(&server.url("/"), LIMITS).await.unwrap();
    assert_eq!(fetched.bytes, b"at last");

    let server = Server::answering(vec![redirect("/again"); 7]).await;
    let result = local().fetch(&server.url("/"), LIMITS).await;
    assert_eq!(result.unwrap_err(), FetchError::Status(302));
    assert_eq!(server.connections(), 6);
}

#[tokio::test]
async fn statuses_become_errors_and_some_are_transient() {
    for (code, transient) in [(404, false), (304, false), (408, true), (429, true), (500, true), (599, true)] {
        let server = Server::answering(vec![status(code)]).await;
        let error = local().fetch(&server.url("/"), LIMITS).await.unwrap_err();
        assert_eq!(error, FetchError::Status(code));
        assert_eq!(error.is_transient(), transient, "{code}");
    }
}

#[tokio::test]
async fn the_cap_is_exact_for_a_body_of_unknown_length() {
    let server = Server::answering(vec![chunked(&"x".repeat(1000))]).await;
    let fetched = local().fetch(&server.url("/"), LIMITS).await.unwrap();
    assert_eq!(fetched.bytes.len(), 1000);

    let server = Server::answering(vec![chunked(&"x".repeat(1001))]).await;
    let error = local().fetch(&server.url("/"), LIMITS).await.unwrap_err();
    assert_eq!(error, FetchError::TooLarge { limit: 1000 });
    assert!(!error.is_transient());
}

#[tokio::test]
async fn an_endless_body_is_given_up() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let server = Server::repeating(head, "5\r\nxxxxx\r\n").await;
    let result = local().fetch(&server.url("/"), LIMITS).await;
    assert_eq!(result.unwrap_err(), FetchError::TooLarge { limit: 1000 });
}

#[tokio::test]
async fn a_declared_length_over_the_cap_is_refused_without_reading() {
    // No byte of the body ever comes: a client that waits for one would time out.
    let server = Server::stalling("HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n").await;
    let result = local().fetch(&server.url("/"), LIMITS).await;
    assert_eq!(result.unwrap_err(), FetchError::TooLarge { limit: 1000 });
}

#[tokio::test]
async fn a_server_that_does_not_answer_times_out() {
    for sent in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"] {
        let server = Server::stalling(sent).await;
        let url = server.url("/");
        let client = local();
        let (fetch, post) = tokio::join!(
            soon(client.fetch(&url, IMPATIENT)),
            soon(client.request(Method::POST, &url, HeaderMap::new(), vec![1], IMPATIENT)),
        );

        let error = fetch.unwrap_err();
        assert_eq!(error, FetchError::Timeout, "after {sent:?}");
        assert!(error.is_transient());
        match post {
            Ok(answer) => assert_eq!((answer.status.as_u16(), &*answer.body, answer.truncated), (200, &b"half"[..], true)),
            Err(error) => assert_eq!((error, sent), (FetchError::Timeout, "")),
        }
    }
}

#[tokio::test]
async fn a_slow_body_does_not_keep_a_status() {
    let server = Server::stalling("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await;
    let unlimited = FetchLimits { timeout: Duration::from_secs(3_600), ..LIMITS };
    let answer = soon(local().notify(&server.url("/"), HeaderMap::new(), vec![1], unlimited, Duration::from_millis(500))).await.unwrap();
    assert_eq!((answer.status.as_u16(), &*answer.body, answer.truncated), (200, &b"half"[..], true));
}

/// Fails the test if the limit given to the call is not the one it keeps.
async fn soon<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(IMPATIENT.timeout * 5, call).await.expect("the call outlasts its limit")
}

#[tokio::test]
async fn a_body_cut_short_is_a_network_error() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_owned();
    let server = Server::answering(vec![cut.clone(), cut]).await;
    let error = local().fetch(&server.url("/"), LIMITS).await.unwrap_err();
    assert!(matches!(error, FetchError::Network(_)), "{error:?}");
    // Whoever posted learns the status all the same.
    let answer = local().request(Method::POST, &server.url("/"), HeaderMap::new(), vec![1], LIMITS).await.unwrap();
    assert_eq!((answer.status.as_u16(), &*answer.body, answer.truncated), (200, &b"half"[..], true));
}

#[tokio::test]
async fn a_post_carries_headers_and_body_and_is_not_redirected() {
    let server = Server::answering(vec![redirect("/elsewhere"), ok("unused")]).await;
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", HeaderValue::from_static("evt_1"));
    headers.insert(USER_AGENT, HeaderValue::from_static("other/1"));

    let answer = local().request(Method::POST, &server.url("/hook"), headers, b"{\"a\":1}".to_vec(), LIMITS).await.unwrap();

    assert_eq!(answer.status, 302);
    assert_eq!(answer.headers["location"], "/elsewhere");
    assert_eq!(server.connections(), 1);
    let request = &server.requests()[0];
    assert!(request.starts_with("POST /hook HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("webhook-id: evt_1\r\n"), "{request}");
    assert!(request.contains("user-agent: other/1\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n{\"a\":1}"), "{request}");
}

#[tokio::test]
async fn the_answer_to_a_post_keeps_its_status_when_its_body_is_cut_off() {
    let server = Server::answering(vec![ok(&"y".repeat(1001)), ok(&"y".repeat(1000))]).await;
    for truncated in [true, false] {
        let answer = local().request(Method::POST, &server.url("/"), HeaderMap::new(), vec![1], LIMITS).await.unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body, vec![b'y'; 1000]);
        assert_eq!(answer.truncated, truncated);
    }
}

#[tokio::test]
async fn https_opens_with_tls() {
    let server = Server::answering(vec![ok("not tls")]).await;
    let url = server.url("/").replace("http:", "https:");
    let error = local().fetch(&url, LIMITS).await.unwrap_err();
    assert!(matches!(error, FetchError::Network(_) | FetchError::Unreachable(_) | FetchError::Timeout), "{error:?}");
    // RFC 8446 §5.1: a handshake record begins with 22.
    let first = tokio::time::timeout(Duration::from_secs(20), server.first_byte()).await.expect("a first byte");
    assert_eq!(first, 22);
}

#[tokio::test]
async fn errors_hold_no_secrets() {
    let closed = Server::closed_port().await;
    let redirecting = Server::answering(vec![redirect("http://u:hunter2@10.0.0.1/s3cret?s3cret")]).await;
    let failing = Server::answering(vec![status(500)]).await;
    let silent = Server::stalling("").await;
    let garbled = Server::answering(vec!["s3cret\r\n\r\n".to_owned()]).await;
    let urls = [
        "https://bot:hunter2@api.example/s3cret?token=s3cret".to_owned(),
        "https://s3cret:hunter2@[bad/?token=s3cret".to_owned(),
        format!("http://127.0.0.1:{closed}/s3cret?token=s3cret"),
        "http://nowhere.invalid/s3cret?token=s3cret".to_owned(),
        redirecting.url("/s3cret"),
        failing.url("/s3cret?token=s3cret"),
        silent.url("/s3cret?token=s3cret"),
        garbled.url("/s3cret?token=s3cret"),
    ];
    for (at, url) in urls.iter().enumerate() {
        let error = local().fetch(url, IMPATIENT).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("hunter2"), "{at}: {shown}");
    }
}

#[tokio::test]
async fn a_network_error_names_host_and_cause() {
    let port = Server::closed_port().await;
    let result = local().fetch(&format!("http://127.0.0.1:{port}/"), LIMITS).await;
    let shown = result.unwrap_err().to_string();
    assert!(shown.starts_with("127.0.0.1: "), "{shown}");
    assert!(shown.to_lowercase().contains("refused"), "{shown}");
}
