//! `GET /v1/phone-numbers`, `GET /v1/phone-numbers/{id}` and `GET /v1/phone-numbers/available`.

use nuncio_domain::number::{Capability, NumberStatus, Wanted};
use nuncio_domain::{Error, FieldError, Result};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Numbers;
use super::view::{AvailableNumberView, PhoneNumberView};
use crate::base::{Caller, UseCase, list, list::Listed, parse_id};

crate::base::list::list_query! {
    /// Query of `GET /v1/phone-numbers`.
    ListNumbers {
        /// Statuses, repeated or comma-separated.
        #[param(value_type = Option<Vec<NumberStatus>>, style = Form, explode, min_items = 1)]
        pub status: Option<String>,
    }
}

/// Query of `GET /v1/phone-numbers/available`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct ListAvailable {
    /// Country of the numbers (ISO 3166-1 alpha-2).
    #[param(min_length = 2, max_length = 2, example = "US")]
    pub country_code: String,
    /// Consecutive digits of the number.
    #[param(max_length = 15)]
    pub contains: Option<String>,
    /// Required capabilities, repeated or comma-separated.
    #[param(value_type = Option<Vec<Capability>>, style = Form, explode, min_items = 1)]
    pub capabilities: Option<String>,
    /// Maximum number of results; 50 when absent.
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

impl Numbers<'_> {
    /// `GET /v1/phone-numbers`: returns a page and the cursor of the next one.
    pub async fn list(&self, caller: &Caller, asked: &ListNumbers) -> Result<Listed<PhoneNumberView>> {
        caller.require(UseCase::ListPhoneNumbers)?;
        let (range, mut errors) = list::asked!(asked);
        let statuses = list::words(asked.status.as_deref(), "query.status", NumberStatus::parse, NumberStatus::ALL, &mut errors);
        let listing = self.listing(caller.tenant, &format!("phone-numbers?{statuses:?}"), &range, errors)?;
        let page = self.inner.store.read().await?.list_numbers(caller.tenant, &statuses, listing.page).await?;
        Ok((page.items.into_iter().map(Into::into).collect(), self.next_cursor(caller.tenant, &listing, page.next)))
    }

    /// `GET /v1/phone-numbers/{id}`.
    pub async fn get(&self, caller: &Caller, id: &str) -> Result<PhoneNumberView> {
        caller.require(UseCase::GetPhoneNumber)?;
        let id = parse_id(id, "phone number")?;
        let number = self.inner.store.read().await?.find_number(caller.tenant, id).await?;
        number.map(Into::into).ok_or_else(|| Error::not_found("phone number"))
    }

    /// `GET /v1/phone-numbers/available`: returns numbers of the inventory that are not held, lowest first.
    pub async fn available(&self, caller: &Caller, asked: &ListAvailable) -> Result<Vec<AvailableNumberView>> {
        caller.require(UseCase::ListAvailablePhoneNumbers)?;
        let (wanted, limit) = read_wanted(asked)?;
        let found = self.inner.store.read().await?.available_numbers(caller.tenant, &wanted, limit).await?;
        Ok(found.into_iter().map(Into::into).collect())
    }
}

fn read_wanted(asked: &ListAvailable) -> Result<(Wanted, u32)> {
    let mut errors = Vec::new();
    let limit = list::limit(asked.limit, &mut errors);
    let capabilities = list::words(asked.capabilities.as_deref(), "query.capabilities", Capability::parse, Capability::ALL, &mut errors);
    let country = list::country(&asked.country_code, "query.countryCode", &mut errors);
    let contains = asked.contains.as_deref().unwrap_or_default();
    if contains.len() > 15 || !contains.bytes().all(|b| b.is_ascii_digit()) {
        let shown: String = contains.chars().take(64).collect();
        errors.push(FieldError::new("query.contains", format!("is {shown:?}; must be at most 15 digits")));
    }
    Error::if_any(errors)?;
    Ok((Wanted { country, contains: contains.to_owned(), capabilities: capabilities.into_iter().collect() }, limit))
}
