//! Business profiles: stored by the provider of a sender's WhatsApp account, and cached here.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nuncio_channel::{Adapter, Picture, ProfileApi, ProfileError};
use nuncio_domain::profile::{BusinessAccount, BusinessProfile, KeptAccount, ProfileChange, Vertical};
use nuncio_domain::{Channel, Error, ErrorCode, FieldError, Result, SenderId, TenantId, address, config::Connection, limits};
use nuncio_net::FetchLimits;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use super::Senders;
use crate::base::{Caller, Change, UseCase, check_version, parse_id, patch::given};

/// Timeout for fetching a picture.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often a call is repeated after a concurrent change.
const AGAIN: usize = 4;

/// Changes of a business profile; absent fields stay unchanged, an empty text or list clears.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateProfile {
    /// Tagline below the name.
    #[serde(default, deserialize_with = "given")]
    #[schema(max_length = 139, nullable = false)]
    pub about: Option<String>,
    /// Address of the business.
    #[serde(default, deserialize_with = "given")]
    #[schema(max_length = 256, nullable = false)]
    pub address: Option<String>,
    /// Description of the business.
    #[serde(default, deserialize_with = "given")]
    #[schema(max_length = 512, nullable = false)]
    pub description: Option<String>,
    /// Contact email address.
    #[serde(default, deserialize_with = "given")]
    #[schema(max_length = 254, example = "hello@example.com", nullable = false)]
    pub email: Option<String>,
    /// Web sites: http or https URLs.
    #[serde(default, deserialize_with = "given")]
    #[schema(max_items = 2, example = json!(["https://example.com"]), nullable = false)]
    pub websites: Option<Vec<String>>,
    /// Industry.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub vertical: Option<Vertical>,
    /// Fails with 409 if the provider has another profile, for pages, which save all fields of a form: see [`ProfileView::version`].
    #[serde(skip)]
    pub expected_version: Option<String>,
}

/// The picture of a business profile.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = SetProfilePicture)]
pub struct SetPicture {
    /// URL to download it from: public, with https, at most 5 MB.
    #[schema(min_length = 1, max_length = 2048, example = "https://example.com/logo.png")]
    pub image_url: String,
    /// MIME type.
    pub mime_type: PictureType,
}

/// MIME type of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, ToSchema)]
pub enum PictureType {
    #[serde(rename = "image/jpeg")]
    Jpeg,
    #[serde(rename = "image/png")]
    Png,
}

impl PictureType {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
        }
    }

    /// Detects the type by the first bytes of a file.
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            _ => None,
        }
    }
}

/// A business profile, as last reported by its provider.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BusinessProfile)]
pub struct ProfileView {
    /// Tagline below the name.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub about: String,
    /// Address of the business.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub address: String,
    /// Description of the business.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub description: String,
    /// Contact email address.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub email: String,
    /// URL of its picture.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub profile_picture_url: String,
    /// Web sites.
    pub websites: Vec<String>,
    /// Industry.
    pub vertical: Vertical,
}

impl From<BusinessProfile> for ProfileView {
    fn from(profile: BusinessProfile) -> Self {
        let BusinessProfile { about, address, description, email, profile_picture_url, websites, vertical } = profile;
        Self { about, address, description, email, profile_picture_url, websites, vertical }
    }
}

impl ProfileView {
    /// Identifies what [`UpdateProfile`] can change. Providers have no version of a profile, and change the URL of a picture by themselves.
    pub fn version(&self) -> String {
        let Self { about, address, description, email, profile_picture_url: _, websites, vertical } = self;
        let editable = json!([about, address, description, email, websites, vertical]);
        URL_SAFE_NO_PAD.encode(Sha256::digest(editable.to_string()))
    }
}

/// A request to the provider.
enum Ask {
    Get,
    Update(ProfileChange),
    Picture(Picture),
}

impl Senders<'_> {
    /// `GET /v1/senders/{id}/profile`.
    pub async fn get_profile(&self, caller: &Caller, sender: &str) -> Result<ProfileView> {
        caller.require(UseCase::GetSenderProfile)?;
        Ok(self.ask(caller.tenant, parse_id(sender, "sender")?, &Ask::Get).await?.profile.into())
    }

    /// `PATCH /v1/senders/{id}/profile`.
    pub async fn update_profile(&self, caller: &Caller, sender: &str, update: UpdateProfile) -> Result<ProfileView> {
        caller.require(UseCase::UpdateSenderProfile)?;
        let sender = parse_id(sender, "sender")?;
        check(&update)?;
        if update.expected_version.is_some() {
            let now = ProfileView::from(self.ask(caller.tenant, sender, &Ask::Get).await?.profile);
            check_version(update.expected_version, now.version(), "profile")?;
        }
        let UpdateProfile { about, address, description, email, websites, vertical, expected_version: _ } = update;
        let change = ProfileChange { about, address, description, email, websites, vertical };
        let ask = if change == ProfileChange::default() { Ask::Get } else { Ask::Update(change) };
        Ok(self.ask(caller.tenant, sender, &ask).await?.profile.into())
    }

    /// `POST /v1/senders/{id}/profile/picture`: fetches the picture and uploads it to the provider.
    pub async fn set_picture(&self, caller: &Caller, sender: &str, picture: SetPicture) -> Result<ProfileView> {
        caller.require(UseCase::SetSenderProfilePicture)?;
        let sender = parse_id(sender, "sender")?;
        // Fetches nothing for a sender that has no profile.
        let (connection, _) = self.business_account(caller.tenant, sender).await?;
        profile_of(&*self.open_account(caller.tenant, &connection)?, sender)?;
        let mut errors = Vec::new();
        self.check_url("imageUrl", &picture.image_url, &mut errors);
        Error::if_any(errors)?;
        let picture = self.fetch_picture(picture).await?;
        Ok(self.ask(caller.tenant, sender, &Ask::Picture(picture)).await?.profile.into())
    }

    async fn fetch_picture(&self, asked: SetPicture) -> Result<Picture> {
        let fetched =
            self.inner.net.fetch(&asked.image_url, FetchLimits { max_bytes: limits::PICTURE_BYTES as u64, timeout: PATIENCE }).await;
        let fetched = fetched.map_err(|why| Error::field("imageUrl", format!("could not be fetched: {why}")))?;
        let is = PictureType::of(&fetched.bytes);
        if is != Some(asked.mime_type) {
            let is = is.map_or("neither a JPEG nor a PNG", PictureType::as_str);
            return Err(Error::field("imageUrl", format!("the file is {is}, but mimeType is {}", asked.mime_type.as_str())));
        }
        Ok(Picture { url: asked.image_url, mime_type: asked.mime_type.as_str(), bytes: fetched.bytes })
    }

    /// Queries a newly connected WhatsApp account. If that fails, the next call about it does so.
    pub(crate) async fn query_new_account(&self, tenant: TenantId, sender: SenderId) {
        match self.ask(tenant, sender, &Ask::Get).await {
            Err(error) if error.code() != ErrorCode::SenderNotConfigured => {
                tracing::warn!(%sender, %error, "failed to query business account");
            }
            _ => {}
        }
    }

    /// Returns the account to store for a new sender, and whether the provider must still be updated.
    pub(crate) async fn first_account(
        &self,
        tenant: TenantId,
        connections: &[Connection],
        known: BusinessAccount,
    ) -> Option<(BusinessAccount, bool)> {
        let Some(connection) = connections.iter().find(|connection| connection.channel == Channel::Whatsapp) else {
            return (known != BusinessAccount::default()).then_some((known, true));
        };
        let adapter = self.open_account(tenant, connection).ok()?;
        let account = adapter.profile()?.get(&known).await.ok()?;
        Some((account, false))
    }

    /// Calls the provider and stores the account it returns. No transaction is open meanwhile: after a concurrent change it calls again, so
    /// that the newest response is stored.
    async fn ask(&self, tenant: TenantId, sender: SenderId, ask: &Ask) -> Result<BusinessAccount> {
        for _ in 0..AGAIN {
            let (connection, kept) = self.business_account(tenant, sender).await?;
            let adapter = self.open_account(tenant, &connection)?;
            let api = profile_of(&*adapter, sender)?;
            let account = call(api, kept.as_ref(), ask).await.map_err(refused)?;
            if kept.as_ref().is_some_and(|kept| kept.account == account && !kept.unsent) {
                return Ok(account);
            }
            if self.keep(tenant, &connection, kept.as_ref(), &account, ask).await? {
                return Ok(account);
            }
        }
        Err(Error::unavailable("the profile keeps changing; try again"))
    }

    /// Stores a response, unless what the call was based on has changed.
    async fn keep(
        &self,
        tenant: TenantId,
        asked: &Connection,
        before: Option<&KeptAccount>,
        account: &BusinessAccount,
        ask: &Ask,
    ) -> Result<bool> {
        let sender = asked.sender;
        let mut tx = self.change_config(tenant).await?;
        let connections = tx.connections_of_senders(tenant, &[sender]).await?;
        let now = tx.accounts_of_senders(tenant, &[sender]).await?.pop();
        let same_account = connections.iter().any(|connection| connection == asked);
        if !same_account || now.as_ref().map(|kept| kept.version) != before.map(|kept| kept.version) {
            return Ok(false);
        }
        let version = before.map_or(0, |kept| kept.version) + 1;
        let kept = KeptAccount { sender, version, account: account.clone(), unsent: false, updated_at: self.ids().clock.now() };
        tx.put_account(tenant, &kept).await?;
        if !matches!(ask, Ask::Get) {
            let shown = |account: &BusinessAccount| ProfileView::from(account.profile.clone());
            let change = Change::new("sender", "update_profile", sender);
            change.from(&before.map(|before| shown(&before.account))).to(&shown(account)).record(&mut *tx, tenant).await?;
        }
        self.commit_change(tenant, tx).await?;
        Ok(true)
    }

    /// Returns the WhatsApp connection of a sender and its stored account.
    async fn business_account(&self, tenant: TenantId, sender: SenderId) -> Result<(Connection, Option<KeptAccount>)> {
        let mut tx = self.inner.store.read().await?;
        tx.find_senders(tenant, &[sender]).await?.pop().ok_or_else(|| Error::not_found("sender"))?;
        let connections = tx.connections_of_senders(tenant, &[sender]).await?;
        let connection = connections.into_iter().find(|connection| connection.channel == Channel::Whatsapp);
        let kept = tx.accounts_of_senders(tenant, &[sender]).await?.pop();
        Ok((connection.ok_or_else(|| not_configured(sender, "has no WhatsApp account connected"))?, kept))
    }

    fn open_account(&self, tenant: TenantId, connection: &Connection) -> Result<Arc<dyn Adapter>> {
        let opened = self.inner.dispatch.open_adapter(tenant, connection);
        opened.map_err(|why| not_configured(connection.sender, &format!("has a WhatsApp account that cannot be used ({why})")))
    }
}

fn profile_of(adapter: &dyn Adapter, sender: SenderId) -> Result<&dyn ProfileApi> {
    adapter.profile().ok_or_else(|| not_configured(sender, "has a WhatsApp account whose provider has no business profiles"))
}

fn not_configured(sender: SenderId, what: &str) -> Error {
    Error::new(
        ErrorCode::SenderNotConfigured,
        format!("sender {sender} {what}; connect one with PUT /v1/senders/{sender}/channels/whatsapp"),
    )
}

/// Makes one call. A profile copied from another sender is sent first.
async fn call(api: &dyn ProfileApi, kept: Option<&KeptAccount>, ask: &Ask) -> Result<BusinessAccount, ProfileError> {
    let mut known = kept.map(|kept| kept.account.clone()).unwrap_or_default();
    if kept.is_some_and(|kept| kept.unsent) {
        known = api.update(&known, &ProfileChange::to(&known.profile)).await?;
    }
    match ask {
        Ask::Get => api.get(&known).await,
        Ask::Update(change) => api.update(&known, change).await,
        Ask::Picture(picture) => api.set_picture(&known, picture).await,
    }
}

fn refused(error: ProfileError) -> Error {
    match error {
        ProfileError::Refused(_) => Error::new(ErrorCode::InvalidRequest, error.to_string()),
        ProfileError::Unavailable(_) => Error::unavailable(error.to_string()),
    }
}

fn check(update: &UpdateProfile) -> Result<()> {
    let mut errors = Vec::new();
    let texts = [
        ("about", &update.about, limits::PROFILE_ABOUT),
        ("address", &update.address, limits::PROFILE_ADDRESS),
        ("description", &update.description, limits::PROFILE_DESCRIPTION),
    ];
    for (path, text, most) in texts {
        let length = text.as_deref().map_or(0, |text| text.chars().count());
        if length > most {
            errors.push(FieldError::new(path, format!("has {length} characters; must have at most {most}")));
        }
    }
    if let Some(email) = update.email.as_deref().filter(|email| !email.is_empty())
        && let Err(error) = address::email(email)
    {
        errors.push(FieldError::new("email", error.to_string()));
    }
    let websites = update.websites.as_deref().unwrap_or_default();
    if websites.len() > limits::PROFILE_WEBSITES {
        errors.push(FieldError::new("websites", format!("has {} items; must have at most {}", websites.len(), limits::PROFILE_WEBSITES)));
    }
    for (n, site) in websites.iter().enumerate().take(limits::PROFILE_WEBSITES).filter(|(_, site)| !is_site(site)) {
        let shown: String = site.chars().take(64).collect();
        let message = format!("is {shown:?}; must be an http or https URL of at most {} bytes", limits::URL_BYTES);
        errors.push(FieldError::new(format!("websites[{n}]"), message));
    }
    Error::if_any(errors)
}

fn is_site(text: &str) -> bool {
    let web = |url: url::Url| matches!(url.scheme(), "https" | "http") && url.has_host();
    text.len() <= limits::URL_BYTES && url::Url::parse(text).is_ok_and(web)
}
