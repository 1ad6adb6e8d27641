//! The business profile.
//!
//! Sources: <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/business-profiles>,
//! <https://developers.facebook.com/docs/whatsapp/cloud-api/health-status>

use async_trait::async_trait;
use nuncio_channel::{Picture, ProfileApi, ProfileError};
use nuncio_domain::profile::{BusinessAccount, BusinessProfile, MethodStatus, ProfileChange, SetupStatus, Vertical};
use serde_json::{Map, Value, json};

use crate::config::Cloud;
use crate::map::profile_error;

/// "There is an error with the payment method."
const NO_PAYMENT: i64 = 141_006;

#[async_trait]
impl ProfileApi for Cloud {
    async fn get(&self, known: &BusinessAccount) -> Result<BusinessAccount, ProfileError> {
        let path = format!("{}?fields=display_phone_number,health_status", self.phone_number_id);
        let number = self.graph.get(&path).await.map_err(|error| profile_error(&error))?;
        let fields = "about,address,description,email,profile_picture_url,websites,vertical";
        let answer = self.graph.get(&format!("{}?fields={fields}", self.profile_path())).await.map_err(|error| profile_error(&error))?;
        let (setup_status, method_status) = payment(&number).unwrap_or((known.setup_status, known.method_status));
        Ok(BusinessAccount {
            phone_number_id: self.phone_number_id.clone(),
            display_phone_number: text(&number, "display_phone_number"),
            setup_status,
            method_status,
            profile: profile(answer.pointer("/data/0").unwrap_or(&Value::Null)),
        })
    }

    async fn update(&self, known: &BusinessAccount, change: &ProfileChange) -> Result<BusinessAccount, ProfileError> {
        self.graph.post(&self.profile_path(), body(change)).await.map_err(|error| profile_error(&error))?;
        self.get(known).await
    }

    async fn set_picture(&self, known: &BusinessAccount, picture: &Picture) -> Result<BusinessAccount, ProfileError> {
        let lacking = || ProfileError::Refused("pictures need the connection's setting app_id".to_owned());
        let app = self.app_id.as_deref().ok_or_else(lacking)?;
        let name = if picture.mime_type == "image/png" { "picture.png" } else { "picture.jpg" };
        let handle =
            self.upload_handle(app, name, picture.mime_type, picture.bytes.clone()).await.map_err(|error| profile_error(&error))?;
        let body = json!({"messaging_product": "whatsapp", "profile_picture_handle": handle});
        self.graph.post(&self.profile_path(), body).await.map_err(|error| profile_error(&error))?;
        self.get(known).await
    }
}

impl Cloud {
    fn profile_path(&self) -> String {
        format!("{}/whatsapp_business_profile", self.phone_number_id)
    }
}

fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn profile(value: &Value) -> BusinessProfile {
    let websites = value.get("websites").and_then(Value::as_array).into_iter().flatten();
    BusinessProfile {
        about: text(value, "about"),
        address: text(value, "address"),
        description: text(value, "description"),
        email: text(value, "email"),
        profile_picture_url: text(value, "profile_picture_url"),
        websites: websites.filter_map(Value::as_str).map(str::to_owned).collect(),
        // Unknown values, such as those that Meta adds later, become the default.
        vertical: value.get("vertical").and_then(|v| serde_json::from_value::<Vertical>(v.clone()).ok()).unwrap_or_default(),
    }
}

/// The payment state in the account's health: a faulty payment method blocks templates. `None` when health is missing.
fn payment(number: &Value) -> Option<(SetupStatus, MethodStatus)> {
    let entities = number.pointer("/health_status/entities")?.as_array()?;
    let mut errors = entities.iter().filter_map(|entity| entity.get("errors")?.as_array()).flatten();
    let unpaid = errors.any(|error| error.get("error_code").and_then(Value::as_i64) == Some(NO_PAYMENT));
    Some(if unpaid { (SetupStatus::NotStarted, MethodStatus::None) } else { (SetupStatus::Complete, MethodStatus::Valid) })
}

fn body(change: &ProfileChange) -> Value {
    let ProfileChange { about, address, description, email, websites, vertical } = change;
    let fields = [
        ("about", about.clone().map(Value::from)),
        ("address", address.clone().map(Value::from)),
        ("description", description.clone().map(Value::from)),
        ("email", email.clone().map(Value::from)),
        ("websites", websites.clone().map(Value::from)),
        ("vertical", vertical.map(|vertical| vertical.as_str().into())),
    ];
    let mut body: Map<_, _> = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    body.insert("messaging_product".to_owned(), "whatsapp".into());
    body.into()
}
