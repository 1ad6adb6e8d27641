//! Sends whole requests to the whole server.

use http::{HeaderName, HeaderValue, Method, Uri};
use nuncio_testkit::{TestResponse, TestApp};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

struct Server {
    runtime: Runtime,
    app: TestApp,
    document: Value,
}

thread_local! {
    static SERVER: Server = {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let app = runtime.block_on(TestApp::start());
        let document = serde_json::to_value(nuncio_api::openapi()).expect("the document is JSON");
        Server { runtime, app, document }
    };
}

/// A request as HTTP/1.1 writes it, with line feeds alone: `POST /v1/messages`, headers, an empty line, the body. The key of the test environment
/// goes along unless a header brings another one.
pub fn request(data: &[u8]) {
    let Some(asked) = Asked::read(data) else { return };
    SERVER.with(|server| {
        let key = format!("Bearer {}", server.app.test_key);
        let mut headers: Vec<_> = asked.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            headers.push(("authorization", &key));
        }
        let answer = server.runtime.block_on(server.app.raw(asked.method.as_str(), &asked.path, &headers, asked.body.clone()));
        check(&server.document, &asked, &answer);
    });
}

#[derive(Debug)]
struct Asked {
    method: Method,
    /// Path and query.
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Asked {
    /// Returns `None` for what no HTTP server would pass on.
    fn read(data: &[u8]) -> Option<Self> {
        let end = data.windows(2).position(|pair| pair == b"\n\n")?;
        let (head, body) = (std::str::from_utf8(&data[..end]).ok()?, data[end + 2..].to_vec());
        let mut lines = head.lines();
        let (method, path) = lines.next()?.split_once(' ')?;
        // Clients do not send what follows a `#`.
        let (method, path) = (method.parse().ok()?, path.split('#').next().filter(|path| path.starts_with('/'))?);
        path.parse::<Uri>().ok()?;
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ")?;
            let name: HeaderName = name.parse().ok()?;
            HeaderValue::from_str(value).ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        });
        // A stream of events does not end.
        let headers: Vec<_> = headers.collect::<Option<_>>()?;
        let streams =
            headers.iter().any(|(name, value): &(String, String)| name == "accept" && value.to_ascii_lowercase().contains("event-stream"));
        (!streams).then(|| Self { method, path: path.to_owned(), headers, body })
    }

    /// Returns the documented operation of the request.
    fn operation<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        let path = self.path.split('?').next().unwrap_or_default();
        let fits = |template: &str| {
            let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
            let alike = |(known, given): (&&str, &&str)| if known.starts_with('{') { !given.is_empty() } else { known == given };
            template.len() == path.len() && template.iter().zip(&path).all(alike)
        };
        // A literal path takes precedence over one with parameters.
        let items = document["paths"].as_object()?.iter().filter(|(template, _)| fits(template));
        let (_, item) = items.min_by_key(|(template, _)| template.matches('{').count())?;
        nuncio_testkit::operation(item, self.method.as_str())
    }
}

fn check(document: &Value, asked: &Asked, answer: &TestResponse) {
    let status = answer.status.as_u16();
    assert!(status < 500, "{asked:?}: {status} {}", answer.text);
    assert!(!answer.header("x-request-id").is_empty(), "{asked:?}: no id");
    let json = answer.header("content-type").starts_with("application/json");
    assert!(!json || asked.method == Method::HEAD || serde_json::from_str::<Value>(&answer.text).is_ok(), "{asked:?}: {}", answer.text);
    if let Some(operation) = asked.operation(document) {
        assert!(operation["responses"].get(status.to_string()).is_some(), "{asked:?}: {status} is not documented; {}", answer.text);
    }
    if status >= 400 && asked.path.starts_with("/v1/") && asked.method != Method::HEAD {
        assert!(json && answer.text.len() <= 64 * 1024 || status == 409, "{asked:?}: {}", answer.text);
        let body: Value = serde_json::from_str(&answer.text).unwrap_or_default();
        assert!(body["code"].is_string(), "{asked:?}: {}", answer.text);
    }
}
