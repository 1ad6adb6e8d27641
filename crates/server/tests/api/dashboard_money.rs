//! Pages for money: the ledger, and prices from a file.

use nuncio_domain::Micros;
use nuncio_domain::user::Role;
use nuncio_testkit::{Backend, TestApp};
use serde_json::json;

use crate::broadcasts::{act, add, draft, finish, phones};
use crate::dashboard::{Browser, person};
use crate::dashboard_pages::upload;
use crate::money::with_prices;
use crate::numbers::stock;

const LEDGER: &str = "/money/ledger";

/// Returns the pages of the ledger.
async fn pages(browser: &Browser<'_>, filter: &str) -> Vec<String> {
    let mut pages = vec![browser.page(&format!("{LEDGER}?{filter}")).await];
    while let Some(older) = pages.last().and_then(|page| page.split("class=\"btn\" href=\"/money/ledger?").nth(1)) {
        let query = older.split('"').next().expect("a link").replace("&amp;", "&");
        pages.push(browser.page(&format!("{LEDGER}?{query}")).await);
    }
    pages
}

// holds: pages.composer
#[tokio::test]
async fn a_check_names_what_the_fallback_costs() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let prices = async |rows: &str| {
        let file = format!("channel,country,unit,provider,fee\n{rows}");
        app.node.core.billing().import_prices(None, &file, true).await.expect("prices");
        browser.submit("/messages/new", &[("to", "+34600111222"), ("text", "hello"), ("do", "check")]).await.expect(200).text
    };
    assert!(prices("").await.contains("No price is set"));
    let both = prices("sms,ES,segment,0.03,0\nwhatsapp,ES,message,0.01,0\n").await;
    assert!(both.contains("$0.01, at most $0.04 with its fallback"), "{both}");
    // Who wrote on WhatsApp is answered there, whatever it costs.
    app.post("/v1/sandbox/inbound", json!({"channel": "whatsapp", "from": "+34600111222", "text": "Hi"})).await.expect(202);
    let one = prices("sms,ES,segment,0.03,0\n").await;
    assert!(one.contains("No price for WhatsApp; at most $0.03 with its fallback"), "{one}");
}

// holds: pages.money
#[tokio::test]
async fn the_ledger_lists_every_movement_of_money() {
    for backend in Backend::all() {
        let app = with_prices(backend).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        assert!(viewer.page(LEDGER).await.contains("No entries yet"));
        assert!(viewer.page("/money").await.contains("href=\"/money/ledger\""));
        app.node.core.billing().add_money(app.tenant(), Micros(5_250_000), None).await.expect("a deposit");
        let mut messages = Vec::new();
        // Many of one time: pages neither repeat nor skip any.
        for n in 0..40 {
            let body = json!({"to": format!("+346001112{n:02}"), "text": "hello", "channel": "sms"});
            messages.push(app.send_message(body).await);
        }
        app.drain().await;
        let found = pages(&viewer, "").await;
        let all = found.concat();
        assert_eq!(found.len(), 2);
        assert!(all.contains("The operator") && all.contains("$5.25") && all.contains("$0.035"), "{all}");
        for id in &messages {
            assert_eq!(all.matches(&format!("href=\"/messages/{id}\"")).count(), 2, "reserved and paid: {id}");
        }
        let reserved = pages(&viewer, "kind=reserve&since=2020-01-01").await;
        assert_eq!((reserved.len(), reserved[0].matches("href=\"/messages/msg_").count()), (1, 40));
        assert!(viewer.page(&format!("{LEDGER}?kind=deposit")).await.contains("$5.25"));
        assert!(viewer.page(&format!("{LEDGER}?since=2099-01-01")).await.contains("Nothing matches"));
        viewer.get(&format!("{LEDGER}?kind=theft")).await.expect(400);
        viewer.get(&format!("{LEDGER}?since=yesterday")).await.expect(400);
        viewer.get(&format!("{LEDGER}?cursor=nonsense")).await.expect(400);
        viewer.submit("/world", &[("world", "live"), ("to", "/money")]).await.expect(303);
        assert!(viewer.page(LEDGER).await.contains("No entries yet"), "the other environment has its own");
    }
}

// holds: pages.money
#[tokio::test]
async fn the_ledger_names_what_money_is_for() {
    for backend in Backend::all() {
        let app = with_prices(backend).await;
        let browser = person(&app, "ow@example.net", Role::Owner).await;
        let id = draft(&app, json!({"name": "News <b>", "channel": "sms", "text": "Hello from Acme"})).await;
        add(&app, &id, phones(3)).await;
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        stock(&app, "+34600777888", "1.25").await;
        browser.submit("/numbers", &[("number", "+34600777888")]).await.expect(303);
        let page = browser.page(LEDGER).await;
        assert!(page.contains(&format!("href=\"/broadcasts/{id}\"")) && page.contains("News &lt;b&gt;"), "{page}");
        assert_eq!(page.matches("href=\"/messages/msg_").count(), 3, "paid by message: {page}");
        assert!(page.contains("Number +34600777888"), "{page}");
    }
}

// holds: pages.money
#[tokio::test]
async fn prices_come_from_a_file_or_not_at_all() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "ow@example.net", Role::Owner).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        let key = browser.form_key().await;
        let good = "channel,country,unit,provider,fee\nsms,ES,segment,0.03,0.005\nsms,*,segment,0.05,0\n";
        upload(&browser, "/money", &[("key", "wrong")], "p.csv", good).await.expect(403);
        assert!(!viewer.page("/money").await.contains("Import prices"));
        upload(&viewer, "/money", &[("key", &viewer.form_key().await)], "p.csv", good).await.expect(403);

        let bad = format!("{good}\nfax,Spain,page,-1,0\nsms,ES,segment,1,1\n");
        let ticked = "name=\"replace\" checked";
        let refused = upload(&browser, "/money", &[("key", &key), ("replace", "on")], "p.csv", &bad).await.expect(400);
        assert!(refused.text.contains(ticked), "the corrected file replaces the others, too: {}", refused.text);
        assert!(refused.text.contains("Nothing was imported: 2 invalid lines"), "{}", refused.text);
        assert!(
            refused.text.contains("<td class=\"num\">5</td>") && refused.text.contains("&quot;fax&quot; is not one of"),
            "{}",
            refused.text
        );
        assert!(refused.text.contains("<td class=\"num\">6</td>") && refused.text.contains("duplicates"), "{}", refused.text);
        assert!(refused.text.contains("No prices"), "nothing is half done");
        let headless = upload(&browser, "/money", &[("key", &key)], "p.csv", "a,b\n").await.expect(400);
        assert!(headless.text.contains("must have the columns channel,country,unit,provider,fee"), "{}", headless.text);

        let done = upload(&browser, "/money", &[("key", &key)], "p.csv", good).await.expect(200);
        assert!(!done.text.contains(ticked), "{}", done.text);
        assert!(done.text.contains("2 prices imported") && done.text.contains("$0.005"), "{}", done.text);
        assert_eq!(browser.page("/money").await.matches("this project</span>").count(), 2);
        let fewer = "channel,country,unit,provider,fee\nsms,ES,segment,0.04,0.005\n";
        let replaced = upload(&browser, "/money", &[("key", &key), ("replace", "on")], "p.csv", &fewer.replace(',', ";")).await.expect(200);
        assert!(replaced.text.contains("1 price imported, 1 other price deleted"), "{}", replaced.text);
        let page = browser.page("/money").await;
        assert!(page.contains("$0.04") && !page.contains("$0.05<") && page.matches("this project</span>").count() == 1, "{page}");
        assert_eq!(app.node.core.billing().list_prices(None).await.expect("prices"), [], "other projects keep theirs");
        assert!(browser.page("/settings/audit?what=prices").await.contains("Prices imported"));
    }
}

// holds: pages.set_up, pages.roles
#[tokio::test]
async fn a_number_is_acquired_after_a_look_at_what_it_costs() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        stock(&app, "+34600777888", "1.25").await;
        let page = browser.page("/numbers?country=ES").await;
        for part in ["Setup", "$1.00", "$1.25", "Acquire +34600777888?", "$2.25 is charged now"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let seen = viewer.page("/numbers?country=ES").await;
        assert!(seen.contains("+34600777888") && !seen.contains("Acquire"), "{seen}");
        for _ in 0..2 {
            browser.submit("/numbers", &[("number", "+34600777888"), ("once", "page-1")]).await.expect(303);
        }
        let late = browser.submit("/numbers", &[("number", "+34600777888"), ("once", "page-2")]).await.expect(400).text;
        assert!(late.contains("This number was acquired meanwhile.") && !late.contains("/v1/"), "{late}");
        assert!(browser.page("/numbers").await.contains("Release +34600777888?"));
        let seen = viewer.page("/numbers").await;
        assert!(seen.contains("+34600777888") && !seen.contains("Release"), "{seen}");
    }
}
