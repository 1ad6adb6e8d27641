//! Tests of the HTTP API as a whole: requests go through the real router, and dispatch uses the test's clock.

mod attachments;
mod audit;
mod audit_log;
mod authz;
mod batch;
mod bounds;
mod broadcast_money;
mod broadcasts;
mod broadcasts_control;
mod broadcasts_drafts;
mod broadcasts_figures;
mod broadcasts_import;
mod broadcasts_lives;
mod broadcasts_pause;
mod broadcasts_review;
mod broadcasts_safety;
mod channels;
mod cli;
mod cli_files;
mod cli_places;
mod clocks;
mod contacts;
mod contacts_fields;
mod contacts_merge;
mod contract;
mod dashboard;
mod dashboard_audit;
mod dashboard_broadcasts;
mod dashboard_details;
mod dashboard_factor;
mod dashboard_forms;
mod dashboard_money;
mod dashboard_oidc;
mod dashboard_pages;
mod dashboard_projects;
mod dashboard_recipients;
mod dashboard_search;
mod dashboard_security;
mod dashboard_templates;
mod dashboard_words;
mod dashboard_work;
mod dispatch;
mod edge;
mod email;
mod erasure;
mod floods;
mod guide;
mod http_providers;
mod idempotency;
mod instagram;
mod introspect;
mod invitations;
mod invite;
mod keys;
mod lists;
mod mail;
mod mail_claims;
mod memory;
mod messages;
mod money;
mod numbers;
mod operations;
mod pages;
mod pages_speed;
mod permits;
mod profiles;
mod providers;
mod quotas;
mod races;
mod readback;
mod recovery;
mod restart;
mod retention;
mod rights;
mod routing;
mod sandbox;
mod sandbox_inbound;
mod scheduling;
mod scripted;
mod senders;
mod statements;
mod stream;
mod suppressions;
mod templates;
mod templates_polled;
mod throttles;
mod unsubscribe;
mod validation;
mod webhook;
mod webhooks;
mod webhooks_edges;
mod webhooks_faults;

/// Formats JSON for snapshots.
fn pretty(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON")
}

/// Runs all futures concurrently.
async fn at_once<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, output) in futures.iter_mut().zip(&mut done) {
            if output.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *output = Some(value);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
