use axum::http::{HeaderName, HeaderValue};
use nuncio_core::messages::SendMessage;
use serde_json::{Value, json};

use super::*;
use crate::budget::{Budget, Lease, Owner};
use crate::json::Validators;
use crate::wire::{Intake, Pace};

fn parse(json: &str, lenient: bool) -> Result<SendMessage, Error> {
    Validators::new(crate::published::schemas).parse(json.as_bytes(), lenient)
}

fn faults(json: &str) -> Vec<(String, String)> {
    let error = parse(json, false).expect_err("must be refused");
    assert_eq!(error.code(), ErrorCode::InvalidRequest, "{error}");
    let text = |fault: &Value, name: &str| fault[name].as_str().unwrap_or_default().to_owned();
    let mut faults: Vec<_> =
        error.details()["errors"].as_array().expect("a list").iter().map(|f| (text(f, "path"), text(f, "message"))).collect();
    faults.sort();
    faults
}

#[track_caller]
fn assert_faults(json: &Value, expected: &[(&str, &str)]) {
    let found = faults(&json.to_string());
    let found: Vec<_> = found.iter().map(|(path, message)| (path.as_str(), message.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn every_fault_is_named_where_the_caller_wrote_it() {
    let body = json!({
        "channel": "smss", "messageType": 5, "text": ["x"], "subject": "s".repeat(999), "idempotencyKey": "",
        "scheduledAt": "tomorrow", "validitySeconds": 5, "fallbackEnabled": "yes",
        "content": {"buttons": [{"id": "1", "title": "x".repeat(21)}, {"title": "b"}], "latitude": 91, "mediaUrl": "ftp://x"},
        "attachments": {},
    });
    assert_faults(
        &body,
        &[
            ("attachments", "is an object; must be an array"),
            ("channel", "is \"smss\"; must be one of auto, sms, sms_oneway, whatsapp, telegram, email, instagram, voice"),
            ("content.buttons[0].title", "has 21 characters; must have at most 20"),
            ("content.buttons[1].id", "is required"),
            ("content.latitude", "is 91; must be at most 90"),
            ("content.mediaUrl", "is \"ftp://x\"; must match ^https?://"),
            ("fallbackEnabled", "is \"yes\"; must be true or false"),
            ("idempotencyKey", "has 0 characters; must have at least 1"),
            ("messageType", "is 5; must be a string"),
            ("scheduledAt", "is \"tomorrow\"; must be an ISO 8601 date-time with an offset, such as 2030-01-31T09:30:00.000Z"),
            ("subject", "has 999 characters; must have at most 998"),
            ("text", "is an array; must be a string"),
            ("to", "is required"),
            ("validitySeconds", "is 5; must be at least 30"),
        ],
    );
}

#[test]
fn unknown_fields_are_named_with_those_that_are_known() {
    let body = json!({"to": "+34600111222", "txt": "hi", "content": {"buttons": [{"id": "1", "title": "a", "url": "x"}]}});
    let found = faults(&body.to_string());
    let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["content.buttons[0].url", "txt"]);
    assert_eq!(found[0].1, "is unknown; known are id, title");
    assert!(found[1].1.starts_with("is unknown; known are attachments, channel, content"), "{}", found[1].1);
}

#[test]
fn lenient_handling_drops_unknown_fields_and_nothing_else() {
    let body = json!({"to": "a@b.example", "txt": "hi", "content": {"buttons": [{"id": "1", "title": "a", "url": "x"}]}}).to_string();
    let command = parse(&body, true).expect("is right but for unknown fields");
    assert_eq!(command.to, "a@b.example");
    assert!(command.content.is_some_and(|content| content.present() == ["buttons"]));
    let error = parse(r#"{"txt":"hi","text":5}"#, true).expect_err("must be refused");
    assert_eq!(error.details()["errors"].as_array().map(Vec::len), Some(2), "{error:?}");
}

#[test]
fn lenient_handling_drops_any_number_of_unknown_fields() {
    let many = |to: &str| format!(r#"{{{}"to":{to}}}"#, (0..1_000).map(|n| format!("\"x{n}\":1,")).collect::<String>());
    assert!(parse(&many("\"x\""), true).is_ok());
    assert_eq!(parse(&many("5"), true).expect_err("must be refused").message(), "to: is 5; must be a string");
}

#[test]
fn a_field_that_is_there_twice_is_refused_lenient_or_not() {
    for lenient in [false, true] {
        let error = parse(r#"{"to":"x","text":"a","to":"y"}"#, lenient).expect_err("must be refused");
        assert!(error.message().starts_with("body: duplicate field `to`"), "{error}");
    }
    assert!(parse(r#"{"to":"x","text":"a","unknown":1,"unknown":2}"#, true).is_ok());
}

#[test]
fn an_outline_leaves_the_checks_of_its_parts_to_them() {
    #[derive(Deserialize, ToSchema)]
    #[serde(deny_unknown_fields)]
    struct Outline {
        #[schema(value_type = Vec<Value>)]
        parts: Vec<Box<serde_json::value::RawValue>>,
    }
    let validators = Validators::new(crate::published::schemas);
    let parse = |json: &str| validators.parse_outline::<Outline>(json.as_bytes(), false);
    let parts = [r#"{"to":"\u0000"}"#.to_owned(), r#"{ "to": 1, "to": 2 }"#.to_owned(), format!("{}{}", "[".repeat(200), "]".repeat(200))];
    let outline = parse(&format!(r#"{{"parts": [{}]}}"#, parts.join(" , "))).expect("is right");
    assert_eq!(outline.parts.iter().map(|part| part.get()).collect::<Vec<_>>(), parts);
    assert!(parse(r#"{"parts":[1],"more":1}"#).is_err());
    assert!(parse(&format!(r#"{{"parts":[{}1]}}"#, "1,".repeat(limits::JSON_VALUES))).is_err(), "too many values in all");
}

#[test]
fn a_whole_number_is_one_in_any_notation() {
    for text in ["60", "60.0", "6e1", "600E-1"] {
        let command = parse(&format!(r#"{{"to":"+34600111222","validitySeconds":{text},"content":{{"latitude":7.0}}}}"#), false);
        assert_eq!(command.expect("is right").validity_seconds, Some(60), "{text}");
    }
    assert_faults(&json!({"to": "+34600111222", "validitySeconds": 60.5}), &[("validitySeconds", "is 60.5; must be a whole number")]);
    for text in ["-60.0", "1e300", "18446744073709551616.0"] {
        let found = faults(&format!(r#"{{"to":"+34600111222","validitySeconds":{text}}}"#));
        assert_eq!((found.len(), found[0].0.as_str()), (1, "validitySeconds"), "{text}: {found:?}");
    }
}

#[test]
fn a_body_where_none_belongs_is_refused_by_its_fields() {
    let parse = |lenient| Validators::new(crate::published::schemas).parse::<Empty>(br#"{"x":1}"#, lenient);
    let error = parse(false).expect_err("must be refused");
    assert_eq!(error.message(), "x: is unknown; no fields are allowed here");
    assert!(parse(true).is_ok());
}

#[test]
fn null_is_absent() {
    let command = parse(r#"{"to":"x","text":null,"content":null,"channel":null,"scheduledAt":null}"#, false).expect("is right");
    assert!(command.text.is_none() && command.content.is_none() && command.channel.is_none());
}

#[test]
fn null_is_no_empty_object() {
    let parse =
        |json: &str| Validators::new(crate::published::schemas).parse::<nuncio_core::contacts::UpdateContact>(json.as_bytes(), false);
    assert!(parse(r#"{"metadata":null}"#).is_err());
    assert!(parse(r#"{"metadata":{},"defaultChannel":null}"#).is_ok());
}

#[test]
fn nul_is_refused_wherever_it_is() {
    let found = faults(r#"{"to":"x","text":"a\u0000b","metadata":{"k":["\u0000"],"n\u0000":1}}"#);
    assert_eq!(
        found,
        [
            ("metadata.k[0]".to_owned(), "must not contain U+0000".to_owned()),
            ("metadata.n\u{2400}".to_owned(), "has a name that contains U+0000".to_owned()),
            ("text".to_owned(), "must not contain U+0000".to_owned()),
        ]
    );
}

#[test]
fn what_only_the_parser_notices_is_told_in_its_words() {
    let found = faults(r#"{"to":"x","to":"y"}"#);
    assert_eq!((found.len(), found[0].0.as_str()), (1, "body"));
    assert!(found[0].1.contains("duplicate field `to`"), "{}", found[0].1);
    assert_faults(&json!([]), &[("body", "is an array; must be an object")]);
}

/// Serde's derived types would also accept an array of their fields.
#[test]
fn a_list_is_no_object_wherever_it_stands() {
    let at = |body: Value, path: &str| assert_faults(&body, &[(path, "is an array; must be an object")]);
    let content = |content: Value| json!({"to": "+34600111222", "content": content});
    at(content(json!(["https://example.com/a.png"])), "content");
    at(content(json!({"buttons": [{"id": "1", "title": "a"}, ["2", "b"]]})), "content.buttons[1]");
    at(content(json!({"sections": [{"title": "t", "rows": [["1", "a", null]]}]})), "content.sections[0].rows[0]");
    at(json!({"to": "+34600111222", "attachments": [["a.txt", "eA==", null, null, null]]}), "attachments[0]");
    assert!(parse(r#"{"to":"x","metadata":{"list":[["1","a"]]},"content":{"buttons":[{"id":"1","title":"a"}]}}"#, false).is_ok());
    assert!(parse(r#"{"to":"x","content":["a"]}"#, true).is_err(), "lenient or not");
}

#[test]
fn deep_nesting_is_refused() {
    let nested = |depth: usize| format!(r#"{{"to":"x","metadata":{{"a":{}{}}}}}"#, "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&nested(30), false).is_ok());
    assert_eq!(faults(&nested(31)), [("body".to_owned(), "is nested 33 levels deep; at most 32 are allowed".to_owned())]);
    assert!(parse(&"[".repeat(100_000), false).is_err());
}

#[test]
fn what_is_no_json_is_told_with_its_place() {
    for (json, line, column) in [("", 1, 0), ("{\"to\":\n \"x\",}", 2, 6), ("{\"to\":\"\u{1}\"}", 1, 8), ("{\"to\":\"x\"} x", 1, 12)] {
        let error = parse(json, false).expect_err("must be refused");
        assert_eq!(error.code(), ErrorCode::InvalidJson, "{json}");
        assert_eq!((error.details()["line"].clone(), error.details()["column"].clone()), (json!(line), json!(column)), "{json}: {error}");
    }
}

#[test]
fn values_that_are_shown_are_short_and_no_secrets() {
    let found = faults(&json!({"to": "x", "channel": "é".repeat(1_000)}).to_string());
    assert!(found[0].1.chars().count() < 200, "{}", found[0].1);
    let many = format!(r#"{{"to":"x",{}}}"#, (0..1_000).map(|n| format!("\"x{n}\":1")).collect::<Vec<_>>().join(","));
    assert!(faults(&many).len() <= limits::FIELD_ERRORS);
}

#[test]
fn only_json_that_is_not_compressed_is_read() {
    let headers = |content_type: &'static str, encoding: Option<&'static str>| {
        let content_type = Some((CONTENT_TYPE, HeaderValue::from_static(content_type)));
        let encoding = encoding.map(|encoding| (CONTENT_ENCODING, HeaderValue::from_static(encoding)));
        content_type.into_iter().chain(encoding).collect::<HeaderMap<_>>()
    };
    for good in ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json"] {
        assert!(check_type(&headers(good, None)).is_ok(), "{good}");
    }
    for bad in ["", "text/plain", "text/json", "application/x-www-form-urlencoded", "json"] {
        assert!(check_type(&headers(bad, None)).is_err(), "{bad}");
    }
    assert!(check_type(&headers("application/json", Some("gzip"))).is_err());
    assert!(check_type(&HeaderMap::from_iter([(HeaderName::from_static("accept"), HeaderValue::from_static("*/*"))])).is_err());
}

/// Runs a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    futures::FutureExt::now_or_never(future).expect("nothing to wait for")
}

fn chunks(sizes: &[usize]) -> Raw {
    let chunks: Vec<_> = sizes.iter().map(|size| Ok::<_, std::convert::Infallible>(Bytes::from(vec![b'x'; *size]))).collect();
    Raw::from_stream(futures::stream::iter(chunks))
}

fn status(result: Result<Bytes, ApiError>) -> Result<usize, u16> {
    result.map(|bytes| bytes.len()).map_err(|error| error.inner().code().status())
}

#[test]
fn bodies_are_bounded_and_share_a_budget() {
    let budget = Budget::new(1_800);
    let lease = || budget.lease(Owner::Address([127, 0, 0, 1].into()));
    let take = |lease: &Lease, body: Raw| {
        let (intake, _) = Intake::new(body, lease.clone(), Pace::default());
        status(now(read(Raw::new(intake), 1_000)))
    };
    assert_eq!(take(&lease(), chunks(&[10, 20, 0, 30])), Ok(60));
    assert_eq!(take(&lease(), chunks(&[500, 500])), Err(503), "each byte counts three times");
    assert_eq!(take(&lease(), chunks(&[1_001])), Err(503), "what is too large is not kept either");
    assert_eq!(status(now(read(chunks(&[10, 20, 31]), 60))), Err(413));
    assert_eq!(status(now(read(Raw::from(vec![0; 61]), 60))), Err(413));
    let first = lease();
    assert_eq!(take(&first, chunks(&[200, 200])), Ok(400));
    assert_eq!(take(&lease(), chunks(&[200])), Err(503), "a small body needs room, too");
    drop(first);
    assert_eq!(take(&lease(), chunks(&[200])), Ok(200));
}
