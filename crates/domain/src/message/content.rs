//! Content of messages that are more than text.

use serde::{Deserialize, Serialize};

use crate::channel::named;

/// One reply button.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ReplyButton))]
#[serde(deny_unknown_fields)]
pub struct Button {
    /// Returned when the recipient presses the button.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
    pub id: String,
    /// Label.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 20))]
    pub title: String,
}

/// One contact card.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ContactCard))]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Name to show.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub name: String,
    /// Phone numbers.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 20))]
    pub phones: Vec<String>,
}

/// One section of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ListSection))]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// Heading.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_length = 24))]
    pub title: String,
    /// Options.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 10))]
    pub rows: Vec<Row>,
}

/// One row of a list.
#[serde_with::skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ListRow))]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Returned when the recipient chooses the row.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
    pub id: String,
    /// Label.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 24))]
    pub title: String,
    /// Second line.
    #[cfg_attr(feature = "openapi", schema(max_length = 72))]
    pub description: Option<String>,
}

named! {
    /// Header of a call to action.
    CtaHeaderType {
        Text = 1 "text",
        Image = 2 "image",
        Video = 3 "video",
        Document = 4 "document",
    }
}

macro_rules! content {
    ($($(#[$meta:meta])* $field:ident $json:literal : $type:ty,)*) => {
        /// Extra content of messages that are more than text. Which fields a message type uses is in `nuncio-core`.
        #[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = MessageContent, description = "Extra content of messages that are more than text. Each message type uses its own fields and rejects the others."))]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        pub struct Content {
            $($(#[$meta])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)*
        }

        impl Content {
            /// Returns the JSON names of the fields present.
            pub fn present(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$field.is_some() { names.push($json); })*
                names
            }

            /// Removes a field by name.
            pub fn clear(&mut self, name: &str) {
                match name { $($json => self.$field = None,)* _ => {} }
            }
        }
    };
}

content! {
    /// URL of the media.
    #[cfg_attr(feature = "openapi", schema(max_length = 2048, pattern = "^https?://", example = "https://example.com/a.png"))]
    media_url "mediaUrl": String,
    /// Id of media already stored by the provider.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 2048))]
    media_id "mediaId": String,
    /// MIME type of the media.
    mime_type "mimeType": String,
    /// File name of the document.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 255))]
    filename "filename": String,
    /// Degrees north, -90 to 90.
    #[cfg_attr(feature = "openapi", schema(minimum = -90, maximum = 90))]
    latitude "latitude": f64,
    /// Degrees east, -180 to 180.
    #[cfg_attr(feature = "openapi", schema(minimum = -180, maximum = 180))]
    longitude "longitude": f64,
    /// Name of the place.
    location_name "locationName": String,
    /// Address of the place.
    location_address "locationAddress": String,
    /// Contact cards.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 20))]
    contacts "contacts": Vec<Card>,
    /// Reply buttons.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 3))]
    buttons "buttons": Vec<Button>,
    /// The button that opens the list.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 20))]
    list_button "listButton": String,
    /// Sections of the list.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 10))]
    sections "sections": Vec<Section>,
    /// Label of the link button.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 20))]
    cta_display_text "ctaDisplayText": String,
    /// URL of the link button.
    #[cfg_attr(feature = "openapi", schema(max_length = 2048, pattern = "^https?://", example = "https://example.com/offer"))]
    cta_url "ctaUrl": String,
    /// Header type of the call to action.
    cta_header_type "ctaHeaderType": CtaHeaderType,
    /// Header text.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 60))]
    cta_header_text "ctaHeaderText": String,
    /// Header media.
    #[cfg_attr(feature = "openapi", schema(max_length = 2048, pattern = "^https?://", example = "https://example.com/a.png"))]
    cta_header_media_url "ctaHeaderMediaUrl": String,
    /// Footer text.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 60))]
    footer_text "footerText": String,
    /// The reaction.
    #[cfg_attr(feature = "openapi", schema(max_length = 16))]
    emoji "emoji": String,
    /// The message to react to.
    react_to_message_id "reactToMessageId": String,
    /// The template.
    template_id "templateId": String,
    /// Body variables by position or name.
    template_variables "templateVariables": std::collections::BTreeMap<String, String>,
    /// Button variables by button index.
    template_button_variables "templateButtonVariables": std::collections::BTreeMap<String, String>,
    /// Header variables.
    template_header_variables "templateHeaderVariables": std::collections::BTreeMap<String, String>,
}
