//! Templates: passed in, and asked about.

use nuncio_channel_meta::scripted::{Api, Reply, refusal};
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::message::FailureCode;
use nuncio_domain::template::{Button, ButtonType, Category, Content, Decision, HeaderType, Status, Template};
use nuncio_domain::{TemplateId, TenantId, Timestamp};
use serde_json::{Value, json};

use crate::support::{CLOUD, start};

pub(crate) fn template(name: &str, language: &str, content: Content) -> Template {
    Template {
        tenant: TenantId(3),
        id: TemplateId::from_uuid(uuid_v7(Timestamp::from_millis(1), [1; 10])),
        name: name.into(),
        language: language.into(),
        status: Status::Pending,
        version: 1,
        due_at: None,
        content,
        updated_at: Timestamp::from_millis(1),
    }
}

pub(crate) fn button(kind: ButtonType, text: &str, url: Option<&str>, phone_number: Option<&str>) -> Button {
    Button { kind, text: text.into(), url: url.map(str::to_owned), example: None, phone_number: phone_number.map(str::to_owned) }
}

fn content(body: &str) -> Content {
    Content { body: body.into(), category: Some(Category::Utility), ..Content::default() }
}

/// The templates that the third-party peer makes, too, by name.
pub(crate) fn all() -> Vec<(&'static str, Template)> {
    let buttons = vec![
        button(ButtonType::Url, "Track", Some("https://x.example/{{order}}"), None),
        button(ButtonType::Phone, "Call", None, Some("+34600111222")),
        button(ButtonType::QuickReply, "Thanks", None, None),
    ];
    let header = |text: &str| (Some(HeaderType::Text), Some(text.to_owned()));
    let (kind, text) = header("News for {{who}}");
    let named = Content {
        header_type: kind,
        header_content: text,
        footer: Some("Acme".into()),
        buttons,
        ..content("Hi {{ name }}, order {{order_number}} left.")
    };
    let (kind, text) = header("News for {{who}}");
    // Another body has more variables, and the header names what is counted below.
    let variables = vec!["1".into(), "2".into(), "3".into()];
    let positional =
        Content { header_type: kind, header_content: text, sms_body: Some("{{3}}".into()), variables, ..content("Hi {{1}}, {{2}}.") };
    let code = Content {
        category: Some(Category::Authentication),
        buttons: vec![button(ButtonType::Otp, "Copy", None, None)],
        ..content("Your code is {{code}}")
    };
    vec![
        ("named", template("order", "en-US", named)),
        ("positional", template("order", "en_US", positional)),
        ("code", template("code", "en", code)),
    ]
}

/// What is posted for a template.
pub(crate) async fn submitted(template: &Template) -> Value {
    let api = start(|_| Reply::json(200, &json!({"id": "572279198452421", "status": "PENDING", "category": "UTILITY"}))).await;
    let adapter = CLOUD.open(&api, json!({}));
    assert_eq!(adapter.templates().unwrap().submit(template).await.as_deref(), Ok("572279198452421"));
    let [call] = &api.seen()[..] else { panic!("one call") };
    assert_eq!(call.path, "/v23.0/102290129340398/message_templates");
    call.json()
}

#[tokio::test]
async fn what_is_handed_in() {
    let all = all();
    let named = submitted(&all[0].1).await;
    assert_eq!(named["parameter_format"], "NAMED");
    assert_eq!(named["components"][1]["text"], "Hi {{name}}, order {{order_number}} left.", "without the spaces");
    assert_eq!(named["components"][3]["buttons"][0]["url"], "https://x.example/{{1}}");
    let positional = submitted(&all[1].1).await;
    assert_eq!(positional["components"][0]["text"], "News for {{1}}", "the header counts as the body does");
    assert_eq!(positional["components"][1]["example"], json!({"body_text": [["Example 1", "Example 2"]]}), "those of the body only");
    let code = submitted(&all[2].1).await;
    assert_eq!(code["components"][0], json!({"type": "BODY", "add_security_recommendation": true}), "WhatsApp words it");
    assert_eq!(code.get("parameter_format"), None);
}

#[tokio::test]
async fn a_named_template_may_have_a_counted_header() {
    let (kind, text) = (Some(HeaderType::Text), Some("News {{1}}".to_owned()));
    let mixed = template("a", "en", Content { header_type: kind, header_content: text, ..content("Hi {{name}}.") });
    let header = &submitted(&mixed).await["components"][0];
    assert_eq!(
        (&header["text"], &header["example"]["header_text_named_params"][0]["param_name"]),
        (&json!("News {{header_1}}"), &json!("header_1"))
    );
}

#[tokio::test]
async fn a_picture_above_is_fetched_and_uploaded_as_an_example() {
    let files = start(|seen| match seen.path.as_str() {
        "/a.png" => Reply::raw(200, vec![("Content-Type", "image/png; x=y".into())], vec![1, 2, 3]),
        _ => Reply::raw(404, Vec::new(), Vec::new()),
    })
    .await;
    let api = start(|seen| match seen.path.split('?').next().unwrap() {
        path if path.ends_with("/uploads") => Reply::json(200, &json!({"id": "upload:abc"})),
        path if path.ends_with("/upload:abc") => Reply::json(200, &json!({"h": "4:handle"})),
        _ => Reply::json(200, &json!({"id": "1"})),
    })
    .await;
    let with =
        |url: String| template("a", "en", Content { header_type: Some(HeaderType::Image), header_content: Some(url), ..content("Hi") });
    let adapter = CLOUD.open(&api, json!({}));
    adapter.templates().unwrap().submit(&with(format!("{}/a.png", files.base()))).await.unwrap();
    let [session, upload, submission] = &api.seen()[..] else { panic!("three calls") };
    assert!(session.path.contains("file_type=image%2Fpng") && upload.body == [1, 2, 3], "{session:?}");
    assert_eq!(
        submission.json()["components"][0],
        json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["4:handle"]}})
    );
    let gone = adapter.templates().unwrap().submit(&with(format!("{}/b.png", files.base()))).await.unwrap_err();
    assert_eq!(gone.code, FailureCode::ContentRejected);
}

/// An API that has these templates, and takes no others.
async fn with(templates: Value) -> Api {
    let listed = json!({"data": templates});
    start(move |seen| match seen.method.as_str() {
        "GET" => Reply::json(200, &listed),
        _ => refusal(400, 100, "Invalid parameter"),
    })
    .await
}

#[tokio::test]
async fn one_that_is_there_already_is_found() {
    let body = json!([{"type": "BODY", "text": "Hi {{name}}", "example": {}}]);
    let code = json!([{"type": "BODY", "text": "*{{1}}* is your verification code."}]);
    let api = with(json!([
        {"id": "1", "name": "order_news", "language": "en_US", "status": "APPROVED", "components": body},
        {"id": "2", "name": "order", "language": "es", "status": "APPROVED", "components": body},
        {"id": "3", "name": "order", "language": "en_US", "status": "PENDING", "components": body},
        {"id": "4", "name": "code", "language": "en", "status": "PENDING", "category": "AUTHENTICATION", "components": code}
    ]))
    .await;
    let adapter = CLOUD.open(&api, json!({}));
    let templates = adapter.templates().unwrap();
    assert_eq!(templates.submit(&template("order", "en-US", content("Hi {{ name }}"))).await.as_deref(), Ok("3"));
    assert!(api.seen()[1].path.contains("name=order&"));
    let (_, code) = all().remove(2);
    assert_eq!(templates.submit(&code).await.as_deref(), Ok("4"), "WhatsApp words it");
    let refused = templates.submit(&template("other", "en-US", content("Hi"))).await.unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (FailureCode::ContentRejected, "Invalid parameter"));
}

#[tokio::test]
async fn one_that_says_something_else_is_not_taken_for_it() {
    let (order, (_, code)) = (template("order", "en", content("Hi")), all().remove(2));
    for (ours, components) in [
        (&order, json!([{"type": "BODY", "text": "Hello"}])),
        (&order, json!([{"type": "BODY", "text": "Hi"}, {"type": "FOOTER", "text": "Acme"}])),
        (&order, Value::Null),
        (&code, json!([{"type": "BODY", "text": "Your code is {{code}}"}])),
    ] {
        let found = json!({
            "id": "3", "name": ours.name, "language": "en", "status": "APPROVED", "category": "UTILITY", "components": components
        });
        let api = with(json!([found])).await;
        let adapter = CLOUD.open(&api, json!({}));
        let templates = adapter.templates().unwrap();
        let refused = templates.submit(ours).await.unwrap_err();
        let reason = "WhatsApp has a template of this name and language with another text; choose another name";
        assert_eq!((refused.code, refused.message.as_str()), (FailureCode::ProviderRejected, reason));
        assert_eq!(templates.status(ours).await, Ok(Decision::Rejected { reason: reason.into() }));
    }
}

#[tokio::test]
async fn what_meta_says_of_one() {
    for (answer, decision) in [
        (json!({"status": "APPROVED", "rejected_reason": "NONE"}), Decision::Approved),
        (json!({"status": "PENDING"}), Decision::Pending),
        (json!({"status": "IN_APPEAL"}), Decision::Pending),
        (
            json!({"status": "REJECTED", "rejected_reason": "INVALID_FORMAT"}),
            Decision::Rejected { reason: "WhatsApp says INVALID_FORMAT".into() },
        ),
        (json!({"status": "PAUSED"}), Decision::Rejected { reason: "WhatsApp says PAUSED".into() }),
    ] {
        let api = start(move |_| Reply::json(200, &answer.clone())).await;
        let mut asked = template("order", "en", content("Hi"));
        asked.content.provider_id = Some("572279198452421".into());
        assert_eq!(CLOUD.open(&api, json!({})).templates().unwrap().status(&asked).await, Ok(decision));
        assert_eq!(api.seen()[0].path, "/v23.0/572279198452421?fields=status,rejected_reason");
    }
    let components = json!([{"type": "BODY", "text": "Hi"}]);
    let api = with(json!([{"id": "3", "name": "order", "language": "en", "status": "APPROVED", "components": components}])).await;
    let adapter = CLOUD.open(&api, json!({}));
    let status = async |name| adapter.templates().unwrap().status(&template(name, "en", content("Hi"))).await;
    assert_eq!((status("order").await, status("other").await), (Ok(Decision::Approved), Ok(Decision::Pending)), "found by its name");
}

#[tokio::test]
async fn without_the_business_account_it_is_said_what_is_missing() {
    let mut account = CLOUD.account("http://127.0.0.1:9", json!({}));
    account.settings.remove("waba_id");
    let adapter = CLOUD.try_open(&account).unwrap();
    let failure = adapter.templates().unwrap().submit(&template("order", "en", content("Hi"))).await.unwrap_err();
    assert!(failure.message.contains("waba_id"), "{failure:?}");
}
