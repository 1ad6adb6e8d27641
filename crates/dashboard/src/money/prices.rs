//! The price list, and its import from a file.

use axum::extract::Multipart;
use maud::{Markup, html};
use nuncio_core::billing::ImportedPrices;
use nuncio_core::users::SignedIn;
use nuncio_domain::price::Price;
use nuncio_domain::{Error, ErrorCode, Result};

use crate::App;
use crate::broadcasts::{broken, short};
use crate::components::{Faults, channel, counted, data_table, empty, figure, form_key, money, time};
use crate::signed::is_form_key;
use crate::upload::{file_field, invalid_rows};

/// The page of the prices, which also takes the file.
pub(super) const PLACE: &str = "/money";
/// Maximum number of prices shown.
const SHOWN: usize = 200;

/// Result of an import: the numbers of prices, or what is wrong.
pub(super) struct Imported {
    pub(super) result: Result<ImportedPrices, Faults>,
    /// Whether prices that are not in the file were to be deleted.
    pub(super) replace: bool,
}

impl Imported {
    pub(super) fn result(&self) -> Markup {
        match &self.result {
            Ok(ImportedPrices { imported, deleted }) => {
                let deleted = self.replace.then(|| counted(*deleted as u64, "other price"));
                html! { section class="panel" role="status" { header { h2 { (counted(*imported as u64, "price")) " imported" @if let Some(deleted) = deleted { ", " (deleted) " deleted" } } } } }
            }
            Err(faults) => {
                let lines: Vec<_> = faults.all().filter_map(|(path, why)| Some((path.strip_prefix("line ")?, why))).collect();
                html! {
                    @if lines.is_empty() { (faults.summary()) } @else {
                        section class="panel" role="alert" {
                            header { h2 { "Nothing was imported: " (counted(lines.len() as u64, "invalid line")) } }
                            (invalid_rows(lines.into_iter()))
                        }
                    }
                }
            }
        }
    }
}

/// Renders the prices of the project, which precede the general ones.
pub(super) fn panel(own: &[Price], general: &[Price]) -> Markup {
    let count = own.len() + general.len();
    let all = own.iter().map(|price| (price, true)).chain(general.iter().map(|price| (price, false)));
    html! {
        section class="panel" {
            header { h2 { "Prices" } @if count > SHOWN { span class="faint" { "the first " (SHOWN) " of " (figure(count as u64)) } } }
            @if count == 0 {
                (empty("coin", "No prices", "Nothing is charged without them. An owner of the server imports them here, or for all projects with nuncio prices import FILE.csv.", html! {}))
            } @else {
                (data_table("fix", "Prices", &[("", "Channel"), ("w1", "Country"), ("w w2", "For each"), ("num w2", "Carrier"), ("num w2", "Fee"), ("num w w3", "From")], html! {
                    @for (price, is_own) in all.take(SHOWN) { (row(price, is_own)) }
                }))
            }
        }
    }
}

fn row(price: &Price, is_own: bool) -> Markup {
    let from = html! { @if price.effective_from.millis() <= 0 { "always" } @else { (time(price.effective_from)) } };
    html! {
        tr {
            td {
                (channel(price.channel)) @if is_own { " " span class="tag" { "this project" } }
                span class="n faint" { "for each " (price.unit) @if price.effective_from.millis() > 0 { ", from " (from) } }
            }
            td { (price.country) }
            td class="w" { (price.unit) }
            td class="num" { (money(Some(price.cost.provider))) }
            td class="num" { (money(Some(price.cost.fee))) }
            td class="num w" { (from) }
        }
    }
}

/// Renders the upload form; after a faulty file, with what was ticked.
pub(super) fn form(who: &SignedIn, last: Option<&Imported>) -> Markup {
    let replace = last.is_some_and(|last| last.replace && last.result.is_err());
    let none = Faults::default();
    let faults = last.and_then(|last| last.result.as_ref().err()).unwrap_or(&none);
    html! {
        section class="panel" {
            header { h2 { "Prices from a file" } }
            form class="body" method="post" enctype="multipart/form-data" action=(PLACE) {
                (form_key(who))
                label class="check" { input type="checkbox" name="replace" checked[replace]; "Delete prices of this project that are not in the file" }
                (file_field("CSV file", ".csv,.txt", "The first line names the columns: channel, country, unit, provider, fee, and effective_from if prices begin later. Country * is every other country. The prices hold for this project only, in both environments, and precede general ones.", faults))
                div class="row" { button class="btn" { "Import prices" } }
            }
        }
    }
}

/// Imports the prices of a file, and reads whether it is to `replace` others; `None` if the form key is wrong. The other fields must precede the file, the form key first.
pub(super) async fn import(app: &App, who: &SignedIn, mut parts: Multipart, replace: &mut bool) -> Result<Option<ImportedPrices>> {
    let mut ours = false;
    while let Some(mut part) = parts.next_field().await.map_err(broken)? {
        match part.name().unwrap_or_default().to_owned().as_str() {
            "key" => ours = is_form_key(who, &short(&mut part).await?)?,
            "replace" => *replace = short(&mut part).await? == "on",
            "file" if ours => {
                if !who.owns_server {
                    return Err(Error::new(ErrorCode::Forbidden, "Only owners of the oldest project can import prices"));
                }
                let bytes = part.bytes().await.map_err(broken)?;
                let csv = std::str::from_utf8(&bytes).map_err(|_| Error::field("file", "is not text in UTF-8"))?;
                return app.core.billing().import_prices(Some(who.project.id), csv, *replace).await.map(Some);
            }
            _ => {}
        }
    }
    if ours { Err(Error::field("file", "is missing; choose a file")) } else { Ok(None) }
}
