//! Second factor: authenticator codes, and recovery codes. The test has its own RFC 6238 implementation, independent of the server's; tests
//! in `core` use the RFC's examples.

use std::time::Duration;

use hmac::{Hmac, Mac as _};
use nuncio_domain::Clock as _;
use nuncio_domain::user::Role;
use nuncio_testkit::{TestApp, TestResponse};
use sha1::Sha1;

use crate::audit::log;
use crate::dashboard::{Browser, PASSWORD, person};

/// Returns the current code of an authenticator app with this key.
fn shown(app: &TestApp, key: &str) -> String {
    let mut bits = String::new();
    for c in key.chars() {
        bits += &format!("{:05b}", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".find(c).expect("base32"));
    }
    let secret: Vec<u8> = (0..bits.len() / 8).map(|n| u8::from_str_radix(&bits[n * 8..n * 8 + 8], 2).expect("bits")).collect();
    let mut mac = Hmac::<Sha1>::new_from_slice(&secret).expect("any length");
    mac.update(&(app.clock.now().millis() / 30_000).to_be_bytes());
    let hash = mac.finalize().into_bytes();
    let at = usize::from(hash[19] & 15);
    let number = u32::from_be_bytes(hash[at..at + 4].try_into().expect("four bytes")) & 0x7fff_ffff;
    format!("{:06}", number % 1_000_000)
}

fn between<'a>(text: &'a str, left: &str, right: &str) -> &'a str {
    text.split(left).nth(1).and_then(|rest| rest.split(right).next()).unwrap_or_else(|| panic!("{left} in {text}"))
}

/// Sets up a second factor. Returns its key and recovery codes.
async fn set_up(app: &TestApp, browser: &Browser<'_>) -> (String, Vec<String>) {
    let place = "/settings/account";
    browser.submit(place, &[("factor", "begin"), ("current", PASSWORD)]).await.expect(303);
    let page = browser.page(place).await;
    let key = between(between(&page, "Scan this", "</form>"), "data-copy=\"", "\"").to_owned();
    assert!(page.contains("<svg role=\"img\"") && page.contains("viewBox"), "{page}");
    assert!(app.holders(&key).await.is_empty(), "it is sealed");
    let wrong = browser.submit(place, &[("factor", "confirm"), ("code", "000000")]).await.expect(400);
    assert!(wrong.text.contains("is not the code in the app"), "{}", wrong.text);
    let on = browser.submit(place, &[("factor", "confirm"), ("code", &shown(app, &key))]).await.expect(200);
    let codes: Vec<String> = between(&on.text, "data-copy=\"", "\"").split(' ').map(str::to_owned).collect();
    assert_eq!(codes.len(), 10);
    assert!(app.holders(&codes[0]).await.is_empty(), "only a hash is kept");
    (key, codes)
}

fn ticket(answer: &TestResponse) -> String {
    between(&answer.text, "name=\"ticket\" value=\"", "\"").to_owned()
}

// holds: pages.factor
#[tokio::test]
async fn a_second_factor_is_asked_for_and_its_codes_are_good_once() {
    for app in TestApp::on_each().await {
        let mut browser = person(&app, "ada@example.net", Role::Owner).await;
        let without = browser.submit("/settings/account", &[("factor", "begin"), ("current", "wrong password!")]).await.expect(400);
        assert!(without.text.contains("is not your password"), "{}", without.text);
        let (key, codes) = set_up(&app, &browser).await;
        let page = browser.page("/settings/account").await;
        assert!(page.contains("10 recovery codes are left") && !page.contains(&codes[0]) && !page.contains(&key), "they are shown once");

        let before = browser.cookie.clone();
        let first = browser.sign_in("ada@example.net", PASSWORD).await.expect(200);
        assert!(first.text.contains("Enter your code") && first.header("set-cookie").is_empty(), "{}", first.text);
        assert_eq!(browser.cookie, before, "the password alone is no session");
        let code = shown(&app, &key);
        let ticket = ticket(&first);
        let reused = browser.send("/sign-in", &[("ticket", &ticket), ("code", &code)]).await;
        assert_eq!(reused.status, 401, "it was used to switch it on: {}", reused.text);
        app.clock.advance(Duration::from_secs(60));
        let code = shown(&app, &key);
        let done = browser.send("/sign-in", &[("ticket", &ticket), ("code", &code), ("to", "/messages")]).await.expect(303);
        assert_eq!(done.header("location"), "/messages");
        browser.remember(&done);
        browser.page("/messages").await;
        browser.send("/sign-in", &[("ticket", &ticket), ("code", &code)]).await.expect(401);
        let again = self::ticket(&browser.sign_in("ada@example.net", PASSWORD).await.expect(200));
        browser.send("/sign-in", &[("ticket", &again), ("code", &code)]).await.expect(401);

        app.clock.advance(Duration::from_secs(60));
        let typed = codes[3].to_uppercase().replace('-', "  ");
        browser.send("/sign-in", &[("ticket", &again), ("code", &typed)]).await.expect(303);
        let again = self::ticket(&browser.sign_in("ada@example.net", PASSWORD).await.expect(200));
        browser.send("/sign-in", &[("ticket", &again), ("code", &codes[3])]).await.expect(401);
        assert!(browser.page("/settings/account").await.contains("9 recovery codes are left"));
        let other = if &again[40..41] == "A" { "B" } else { "A" };
        let forged = format!("{}{other}{}", &again[..40], &again[41..]); // in the signed part
        browser.send("/sign-in", &[("ticket", &forged), ("code", &codes[4])]).await.expect(401);
        app.clock.advance(Duration::from_secs(301));
        let late = browser.send("/sign-in", &[("ticket", &again), ("code", &codes[4])]).await.expect(401);
        assert!(late.text.contains("took too long"), "{}", late.text);

        browser.submit("/settings/account", &[("factor", "remove"), ("current", PASSWORD)]).await.expect(303);
        browser.sign_in("ada@example.net", PASSWORD).await.expect(303);
        let verbs: Vec<_> = log(&app, app.project.live).await.into_iter().map(|entry| entry.verb).collect();
        for verb in ["switch_on_second_factor", "use_recovery_code", "refused_second_step", "switch_off_second_factor"] {
            assert!(verbs.iter().any(|known| known == verb), "{verb}: {verbs:?}");
        }
    }
}

// holds: pages.factor
#[tokio::test]
async fn codes_cannot_be_guessed_and_owners_help_who_lost_theirs() {
    let app = TestApp::start().await;
    let owner = person(&app, "ada@example.net", Role::Owner).await;
    let mut other = person(&app, "bo@example.net", Role::Operator).await;
    let (key, _) = set_up(&app, &other).await;
    app.clock.advance(Duration::from_secs(60));
    let ticket = ticket(&other.sign_in("bo@example.net", PASSWORD).await.expect(200));
    let mut statuses = Vec::new();
    for _ in 0..7 {
        statuses.push(other.send("/sign-in", &[("ticket", &ticket), ("code", "000000")]).await.status.as_u16());
    }
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429, 429]);
    let right = other.send("/sign-in", &[("ticket", &ticket), ("code", &shown(&app, &key))]).await;
    assert_eq!(right.status, 429, "also a right one must wait");

    assert!(owner.page("/settings/people").await.contains("second factor"));
    other.submit("/settings/people", &[("reset", "bo@example.net")]).await.expect(403);
    owner.submit("/settings/people", &[("reset", "bo@example.net")]).await.expect(303);
    app.clock.advance(Duration::from_secs(60));
    other.sign_in("bo@example.net", PASSWORD).await.expect(303);
}
