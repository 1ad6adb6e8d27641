//! HTTP providers with their adapters: a message is sent, its receipt arrives at the callback URL, and an inbound message arrives.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, Mac as _};
use nuncio_channel::scripted::{Reply, Scripted};
use nuncio_domain::Channel;
use nuncio_testkit::{Backend, TestApp};
use serde_json::{Value, json};
use sha1::Sha1;
use url::form_urlencoded;

const SECRET: &str = "a-word-of-our-own";

async fn send(app: &TestApp, text: &str) -> String {
    let body = json!({"to": "+34600111333", "channel": "sms", "text": text});
    let sent = app.with_key(&app.live_key, "POST", "/v1/messages", Some(body)).await.expect(202);
    app.drain().await;
    sent.json()["message"]["id"].as_str().expect("an id").to_owned()
}

async fn get(app: &TestApp, path: &str) -> Value {
    app.with_key(&app.live_key, "GET", path, None).await.expect(200).json()
}

async fn status(app: &TestApp, id: &str) -> Value {
    get(app, &format!("/v1/messages/{id}")).await["message"]["status"].clone()
}

/// Returns a variable of a query or form.
fn variable(pairs: &[u8], name: &str) -> String {
    form_urlencoded::parse(pairs).find(|(key, _)| key == name).map(|(_, value)| value.into_owned()).expect("the variable")
}

#[tokio::test]
async fn through_kannel_and_back() {
    for backend in Backend::all() {
        let gateway = Scripted::start(|_| Reply::text(202, "0: Accepted for delivery")).await;
        let app = TestApp::on(backend).await;
        let settings = json!({"url": format!("{}/cgi-bin/sendsms", gateway.base()), "username": "tester"});
        app.connect(Channel::Sms, "kannel", settings, json!({"password": "foobar", "callback_secret": SECRET})).await;
        let id = send(&app, &"long text. ".repeat(40)).await;
        assert_eq!(status(&app, &id).await, "sent");
        assert_eq!(get(&app, &format!("/v1/messages/{id}")).await["message"]["segments"], 3);

        let seen = gateway.seen().remove(0);
        let address = variable(seen.path.split_once('?').expect("a query").1.as_bytes(), "dlr-url");
        let path = address.strip_prefix("https://nuncio.example").expect("our own address");
        let filled = |kind: &str| path.replace("%d", kind).replace("%A", "").replace("%T", "1795304697");
        app.raw("GET", &filled("1").replace("&k=", "&k=00"), &[], Vec::new()).await.expect(401);
        assert_eq!(status(&app, &id).await, "sent", "a forged receipt");
        for kind in ["8", "1", "1", "2"] {
            app.raw("GET", &filled(kind), &[], Vec::new()).await.expect(200);
        }
        assert_eq!(status(&app, &id).await, "delivered", "what comes after is too late");

        let place = path.split_once("/dlr").expect("the address of receipts").0;
        let message = format!("{place}?key={SECRET}&from=34600111333&text=Hola+t%C3%BA&charset=UTF-8&coding=0&time=1795304695&id=7");
        app.raw("GET", &message.replace(SECRET, "wrong"), &[], Vec::new()).await.expect(401);
        for _ in ["first", "duplicate"] {
            assert_eq!(app.raw("GET", &message, &[], Vec::new()).await.expect(200).text, "", "Kannel would send it as an answer");
        }
        let all = get(&app, "/v1/messages").await;
        let inbound: Vec<_> = all["items"].as_array().expect("messages").iter().filter(|m| m["direction"] == "inbound").collect();
        let [inbound] = inbound[..] else { panic!("{all}") };
        assert_eq!((&inbound["text"], &inbound["from"]), (&json!("Hola tú"), &json!("+34600111333")));
    }
}

/// One account of a gateway can have the numbers of several senders.
// holds: suppressions.stop
#[tokio::test]
async fn a_stop_is_for_the_sender_of_the_number_that_was_written_to() {
    const OWN: &str = "+34911222333";
    const OTHER: &str = "+34999887033";
    for backend in Backend::all() {
        let gateway = Scripted::start(|_| Reply::text(202, "0: Accepted for delivery")).await;
        let app = TestApp::on(backend).await;
        let url = format!("{}/cgi-bin/sendsms", gateway.base());
        let secrets = json!({"password": "foobar", "callback_secret": SECRET});
        let connect = async |extra: Value| {
            let mut settings = json!({"url": url, "username": "tester"});
            settings.as_object_mut().expect("an object").extend(extra.as_object().cloned().unwrap_or_default());
            app.connect(Channel::Sms, "kannel", settings, secrets.clone()).await;
        };
        connect(json!({"from": OWN})).await;
        let brand = json!({"name": "Brand B", "phoneNumber": OTHER});
        let brand = app.with_key(&app.live_key, "POST", "/v1/senders", Some(brand)).await.expect(201).json()["id"].clone();
        let world = app.node.core.tenant_config(app.project.live).await.expect("the live world");
        let connection = world.connections.iter().find(|c| c.kind == "kannel").expect("a connection").id;
        // Returns the senders of the suppression, the message and the confirmation, and the number that the confirmation came from.
        let stop = async |author: &str, to: &str| {
            app.advance(Duration::from_secs(1)).await;
            let query = format!("key={SECRET}&from={author}&to={}&text=STOP&time=1795304695&id={author}", to.trim_start_matches('+'));
            app.raw("GET", &format!("/providers/kannel/{connection}?{query}"), &[], Vec::new()).await.expect(200);
            app.drain().await;
            let suppressed = get(&app, &format!("/v1/suppressions?identifier=%2B{author}")).await["items"][0]["senderId"].clone();
            let messages = get(&app, "/v1/messages?limit=2").await["items"].clone();
            let [confirmation, inbound] = [&messages[0], &messages[1]];
            assert_eq!((&suppressed, &inbound["senderId"], &inbound["to"]), (&confirmation["senderId"], &suppressed, &json!(to)));
            let seen = gateway.seen().pop().expect("a confirmation");
            let from = variable(seen.path.split_once('?').expect("a query").1.as_bytes(), "from");
            assert_eq!(confirmation["from"], from.as_str());
            (suppressed, from)
        };
        let default = json!(world.default_sender().expect("a default sender").id);
        assert_eq!(stop("34600111301", OWN).await, (default.clone(), OWN.to_owned()));
        assert_eq!(stop("34600111302", "+34999887034").await, (default, OWN.to_owned()), "no sender has this number");
        assert_eq!(stop("34600111303", OTHER).await, (brand.clone(), OWN.to_owned()), "the only connection sends from one number");
        connect(json!({})).await;
        assert_eq!(stop("34600111304", OTHER).await, (brand.clone(), OTHER.to_owned()));

        connect(json!({"from": OWN})).await;
        let own = json!({"kind": "kannel", "settings": {"url": url, "username": "brand"}, "secrets": secrets});
        let path = format!("/v1/senders/{}/channels/sms", brand.as_str().expect("an id"));
        app.with_key(&app.live_key, "PUT", &path, Some(own)).await.expect(201);
        assert_eq!(stop("34600111305", OTHER).await, (brand, OTHER.to_owned()), "by its own connection");
    }
}

#[tokio::test]
async fn who_told_twilio_to_stop_gets_no_more() {
    let api = Scripted::start(|_| Reply::json(400, &json!({"code": 21_610, "message": "Attempt to send to unsubscribed recipient"}))).await;
    let app = TestApp::start().await;
    let settings = json!({"account_sid": "AC1", "base_url": api.base()});
    app.connect(Channel::Sms, "twilio", settings, json!({"auth_token": SECRET})).await;
    let id = send(&app, "x").await;
    let message = get(&app, &format!("/v1/messages/{id}")).await["message"].clone();
    assert_eq!((&message["status"], &message["errorCode"]), (&json!("failed"), &json!("recipient_suppressed")), "{message}");
    let again = send(&app, "again").await;
    assert_eq!(get(&app, &format!("/v1/messages/{again}")).await["message"]["errorCode"], "recipient_suppressed");
    assert_eq!(api.seen().len(), 1, "nothing goes out any more");
    assert_eq!(variable(&api.seen()[0].body, "Body"), "x");
}

/// Brings an inbound message as Twilio does: its parameters, sorted by name.
async fn bring(app: &TestApp, connection: &str, parameters: &[(&str, &str)]) {
    let path = format!("/providers/twilio/{connection}");
    let signed = parameters.iter().fold(format!("https://nuncio.example{path}"), |text, (name, value)| text + name + value);
    let mac = Hmac::<Sha1>::new_from_slice(SECRET.as_bytes()).expect("a key").chain_update(signed);
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    let headers = [("x-twilio-signature", signature.as_str()), ("content-type", "application/x-www-form-urlencoded")];
    app.raw("POST", &path, &headers, body.into_bytes()).await.expect(200);
}

/// Words that only the account at Twilio knows, and a word that nuncio would answer, too.
// holds: suppressions.stop
#[tokio::test]
async fn what_twilio_has_answered_counts_and_is_not_answered_again() {
    for backend in Backend::all() {
        let api = Scripted::start(|_| Reply::json(201, &json!({"sid": "SM1", "status": "queued"}))).await;
        let app = TestApp::on(backend).await;
        let settings = json!({"account_sid": "AC1", "from": "+34600000001", "base_url": api.base()});
        app.connect(Channel::Sms, "twilio", settings, json!({"auth_token": SECRET})).await;
        let world = app.node.core.tenant_config(app.project.live).await.expect("the live world");
        let connection = world.connections.iter().find(|c| c.kind == "twilio").expect("a connection").id.to_string();
        for (sid, text, opt_out_type, suppressed) in
            [("SM2", "ADIOS", "STOP", 1), ("SM3", "HELP", "HELP", 1), ("SM4", "HOLA", "START", 0), ("SM2", "ADIOS", "STOP", 0)]
        {
            let parameters = [("Body", text), ("From", "+34600111333"), ("MessageSid", sid), ("OptOutType", opt_out_type)];
            bring(&app, &connection, &parameters).await;
            app.drain().await;
            let listed = get(&app, "/v1/suppressions").await;
            assert_eq!(listed["items"].as_array().map(Vec::len), Some(suppressed), "{text}: {listed}");
        }
        assert_eq!(api.seen().len(), 0, "Twilio has replied");
        let inbound = get(&app, "/v1/messages?direction=inbound").await;
        assert_eq!(inbound["items"].as_array().map(Vec::len), Some(3));
    }
}
