//! Submits templates and asks for their status.
//!
//! Source: <https://developers.facebook.com/docs/whatsapp/business-management-api/message-templates>

use async_trait::async_trait;
use nuncio_channel::TemplateApi;
use nuncio_channel_http::{Refusal, RequestError};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::template::{Decision, HeaderType, Template};
use nuncio_net::FetchLimits;
use serde_json::Value;
use url::form_urlencoded;

use crate::config::Cloud;
use crate::{map, template};

/// Largest example of a media header, in bytes: Meta's limit for documents.
const EXAMPLE_BYTES: u64 = 100 << 20;

/// Why a template cannot be submitted whose name another one has.
const NAME_TAKEN: &str = "WhatsApp has a template of this name and language with another text; choose another name";

impl Cloud {
    /// The path of the business account's templates.
    fn templates_path(&self) -> Result<String, Failure> {
        let lacking = || Failure::own(FailureCode::ProviderRejected, "templates need the connection's setting waba_id");
        self.waba_id.as_ref().map(|waba| format!("{waba}/message_templates")).ok_or_else(lacking)
    }

    /// Looks for the template by name and language. Meta also finds templates whose name only contains it.
    async fn find(&self, template: &Template) -> Result<Option<Value>, Failure> {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("name", template.submitted_name())
            .append_pair("fields", "id,name,language,status,rejected_reason,category,components")
            .append_pair("limit", "200")
            .finish();
        let answer = self.graph.get(&format!("{}?{query}", self.templates_path()?)).await.map_err(|error| map::failure(&error))?;
        let mut all = answer.get("data").and_then(Value::as_array).into_iter().flatten();
        let language = template::language(&template.language);
        let same = |found: &&Value| text(found, "name") == template.submitted_name() && text(found, "language") == language;
        Ok(all.find(same).cloned())
    }

    /// The example that a header with media needs.
    async fn example(&self, template: &Template) -> Result<Option<String>, Failure> {
        let (kind, url) = match (template.content.header_type, &template.content.header_content) {
            (Some(kind), Some(url)) if kind != HeaderType::Text => (kind, url),
            _ => return Ok(None),
        };
        let lacking = || Failure::own(FailureCode::ProviderRejected, "examples need the connection's setting app_id");
        let app = self.app_id.as_deref().ok_or_else(lacking)?;
        let limits = FetchLimits { max_bytes: EXAMPLE_BYTES, timeout: self.graph.endpoint.timeout };
        let file = self.graph.endpoint.guarded.fetch(url, limits).await.map_err(|error| {
            let code = if error.is_transient() { FailureCode::Undeliverable } else { FailureCode::ContentRejected };
            Failure::own(code, format!("the example of the header could not be fetched: {error}"))
        })?;
        let (name, usual) = match kind {
            HeaderType::Image => ("example.jpg", "image/jpeg"),
            HeaderType::Video => ("example.mp4", "video/mp4"),
            HeaderType::Document | HeaderType::Text => ("example.pdf", "application/pdf"),
        };
        let content_type = file.content_type.as_deref().and_then(|t| t.split(';').next()).map_or(usual, str::trim);
        let handle = self.upload_handle(app, name, content_type, file.bytes).await.map_err(|error| map::failure(&error))?;
        Ok(Some(handle))
    }
}

#[async_trait]
impl TemplateApi for Cloud {
    async fn submit(&self, template: &Template) -> Result<String, Failure> {
        let path = self.templates_path()?;
        let example = self.example(template).await?;
        let refusal = match self.graph.post(&path, template::submission(template, example.as_deref())).await {
            Ok(answer) if !text(&answer, "id").is_empty() => return Ok(text(&answer, "id").to_owned()),
            Ok(_) => map::NO_ID,
            Err(error) => error,
        };
        // It may exist already, if an earlier response was lost. Another one may be left from a template that was deleted here.
        if let RequestError::Refused(Refusal { status: 400, .. }) = refusal
            && let Ok(Some(found)) = self.find(template).await
        {
            let is_ours = template::says_the_same(template, &found);
            return is_ours.then(|| text(&found, "id").to_owned()).ok_or_else(|| Failure::own(FailureCode::ProviderRejected, NAME_TAKEN));
        }
        Err(map::failure(&refusal))
    }

    async fn status(&self, template: &Template) -> Result<Decision, Failure> {
        match &template.content.provider_id {
            Some(id) if id.bytes().all(|b| b.is_ascii_digit()) => {
                let answer = self.graph.get(&format!("{id}?fields=status,rejected_reason")).await;
                Ok(decision(&answer.map_err(|error| map::failure(&error))?))
            }
            // The response to the submission was lost.
            _ => Ok(match self.find(template).await? {
                Some(found) if template::says_the_same(template, &found) => decision(&found),
                Some(_) => Decision::Rejected { reason: NAME_TAKEN.to_owned() },
                None => Decision::Pending,
            }),
        }
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn decision(found: &Value) -> Decision {
    let reason = text(found, "rejected_reason");
    match text(found, "status") {
        "APPROVED" => Decision::Approved,
        status @ ("REJECTED" | "DISABLED" | "PAUSED" | "DELETED" | "PENDING_DELETION" | "LIMIT_EXCEEDED" | "ARCHIVED") => {
            let words = if matches!(reason, "" | "NONE") { status } else { reason };
            Decision::Rejected { reason: format!("WhatsApp says {words}") }
        }
        _ => Decision::Pending,
    }
}
