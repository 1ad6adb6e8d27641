//! First steps for a new project.

use maud::{Markup, html};
use nuncio_core::users::SignedIn;

use crate::App;
use crate::components::value;
use crate::shell::form_key;

/// Renders the steps that lead to the first message.
pub(super) fn first_steps(app: &App, who: &SignedIn) -> Markup {
    let curl = format!(
        "curl {}/v1/messages -H \"Authorization: Bearer $NUNCIO_API_KEY\" -H \"Content-Type: application/json\" -d '{{\"to\":\"+12025550100\",\"text\":\"Hello\"}}'",
        app.core.public_url()
    );
    html! {
        section class="panel" {
            header { h2 { "Getting started" } }
            ol class="steps" {
                li {
                    span class="n-o" { "1" }
                    div { h3 { "Send a message in the sandbox" } p { "Everything is real except for the carrier." } }
                    div class="more" {
                        form class="row" method="post" action="/messages/new" {
                            (form_key(who))
                            label class="sr" for="to" { "To" }
                            input class="in" id="to" name="to" value="+12025550100" size="14";
                            label class="sr" for="text" { "Text" }
                            input class="in" id="text" name="text" value="Hello from nuncio" size="18";
                            button class="btn go" { "Send it" }
                        }
                        p class="hint" { "Numbers with special behavior: " code { "+12025550001" } " fails, " code { "+12025550003" } " needs two attempts, " code { "+12025550006" } " answers." }
                    }
                }
                li {
                    span class="n-o" { "2" }
                    div { h3 { "Send from your program" } p { "Create a key for the test environment and paste this." } }
                    a class="btn" href="/developers/keys" { "Create a test key" }
                    div class="more" { (value(&curl)) }
                }
                li {
                    span class="n-o" { "3" }
                    div { h3 { "Receive events" } p { "A webhook of a sender gets each event. Try one with a test event." } }
                    a class="btn" href="/senders" { "Set a webhook" }
                }
                li {
                    span class="n-o" { "4" }
                    div { h3 { "Connect a carrier" } p { "Connect a provider account for each channel of a sender in the live environment. Only this step leaves the sandbox." } }
                    a class="btn" href="/senders" { "Senders" }
                }
            }
        }
    }
}
