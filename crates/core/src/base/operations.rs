//! Lists the use cases with their permissions, for the API, its document and the use cases themselves.

use nuncio_domain::Permission;

macro_rules! needs {
    ($($name:ident = $text:literal needs $permission:ident,)*) => {
        /// A use case. It checks the permission itself; interfaces can reject a caller earlier.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum UseCase { $(#[doc = concat!("`", $text, "`.")] $name,)* }

        impl UseCase {
            /// All use cases that need a permission.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the name of its operation in the API.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            pub const fn permission(self) -> Permission {
                match self { $(Self::$name => Permission::$permission,)* }
            }
        }
    };
}

needs! {
    SendMessage = "send_message" needs MessagesSend,
    SendMessages = "send_messages" needs MessagesSend,
    ListMessages = "list_messages" needs MessagesRead,
    GetMessage = "get_message" needs MessagesRead,
    CancelMessage = "cancel_message" needs MessagesSend,
    ResolveMessage = "resolve_message" needs MessagesSend,
    ReactToMessage = "react_to_message" needs MessagesSend,
    ListMessageAttachments = "list_message_attachments" needs MessagesRead,
    ListMessageReceipts = "list_message_receipts" needs MessagesRead,
    ListStrayReceipts = "list_stray_receipts" needs MessagesRead,
    PlayInbound = "play_inbound" needs MessagesSend,
    CreateContact = "create_contact" needs ContactsWrite,
    ListContacts = "list_contacts" needs ContactsRead,
    ListContactMessages = "list_contact_messages" needs MessagesRead,
    GetContact = "get_contact" needs ContactsRead,
    UpdateContact = "update_contact" needs ContactsWrite,
    DeleteContact = "delete_contact" needs ContactsWrite,
    GetContactByPhone = "get_contact_by_phone" needs ContactsRead,
    MergeContacts = "merge_contacts" needs ContactsWrite,
    DismissMergeSuggestion = "dismiss_merge_suggestion" needs ContactsWrite,
    AddContactChannel = "add_contact_channel" needs ContactsWrite,
    UpdateContactChannel = "update_contact_channel" needs ContactsWrite,
    RemoveContactChannel = "remove_contact_channel" needs ContactsWrite,
    MakeContactChannelPrimary = "make_contact_channel_primary" needs ContactsWrite,
    CreateSuppression = "create_suppression" needs ContactsWrite,
    ListSuppressions = "list_suppressions" needs ContactsRead,
    DeleteSuppression = "delete_suppression" needs ContactsWrite,
    IntrospectPhone = "introspect_phone" needs ContactsRead,
    IntrospectEmail = "introspect_email" needs ContactsRead,
    ListEvents = "list_events" needs MessagesRead,
    ListWebhookDeliveries = "list_webhook_deliveries" needs WebhooksRead,
    GetWebhookDelivery = "get_webhook_delivery" needs WebhooksRead,
    ReplayWebhookDelivery = "replay_webhook_delivery" needs WebhooksWrite,
    TestSenderWebhook = "test_sender_webhook" needs WebhooksWrite,
    ListSenders = "list_senders" needs SendersRead,
    CreateSender = "create_sender" needs SendersWrite,
    GetSender = "get_sender" needs SendersRead,
    UpdateSender = "update_sender" needs SendersWrite,
    DeleteSender = "delete_sender" needs SendersWrite,
    GetSenderChannel = "get_sender_channel" needs SendersRead,
    PutSenderChannel = "put_sender_channel" needs SendersWrite,
    DeleteSenderChannel = "delete_sender_channel" needs SendersWrite,
    RequestSenderChannelCode = "request_sender_channel_code" needs SendersWrite,
    VerifySenderChannel = "verify_sender_channel" needs SendersWrite,
    TestSenderChannel = "test_sender_channel" needs SendersWrite,
    GetSenderProfile = "get_sender_profile" needs SendersRead,
    UpdateSenderProfile = "update_sender_profile" needs SendersWrite,
    SetSenderProfilePicture = "set_sender_profile_picture" needs SendersWrite,
    RotateSenderWebhookSecret = "rotate_sender_webhook_secret" needs WebhooksWrite,
    GetWebhook = "get_webhook" needs WebhooksRead,
    PutWebhook = "put_webhook" needs WebhooksWrite,
    DeleteWebhook = "delete_webhook" needs WebhooksWrite,
    TestWebhook = "test_webhook" needs WebhooksWrite,
    RotateWebhookSecret = "rotate_webhook_secret" needs WebhooksWrite,
    GetBalance = "get_balance" needs MessagesRead,
    ListPhoneNumbers = "list_phone_numbers" needs NumbersRead,
    ListAvailablePhoneNumbers = "list_available_phone_numbers" needs NumbersRead,
    AcquirePhoneNumber = "acquire_phone_number" needs NumbersWrite,
    GetPhoneNumber = "get_phone_number" needs NumbersRead,
    UpdatePhoneNumber = "update_phone_number" needs NumbersWrite,
    ReleasePhoneNumber = "release_phone_number" needs NumbersWrite,
    CreateInvitation = "create_invitation" needs InvitationsWrite,
    ListInvitations = "list_invitations" needs InvitationsRead,
    GetInvitation = "get_invitation" needs InvitationsRead,
    CancelInvitation = "cancel_invitation" needs InvitationsWrite,
    ListTemplates = "list_templates" needs TemplatesRead,
    GetTemplate = "get_template" needs TemplatesRead,
    CreateTemplate = "create_template" needs TemplatesWrite,
    UpdateTemplate = "update_template" needs TemplatesWrite,
    DeleteTemplate = "delete_template" needs TemplatesWrite,
    SubmitTemplate = "submit_template" needs TemplatesWrite,
    ListBroadcasts = "list_broadcasts" needs BroadcastsRead,
    GetBroadcast = "get_broadcast" needs BroadcastsRead,
    GetBroadcastProgress = "get_broadcast_progress" needs BroadcastsRead,
    ListBroadcastContacts = "list_broadcast_contacts" needs BroadcastsRead,
    CreateBroadcast = "create_broadcast" needs BroadcastsWrite,
    UpdateBroadcast = "update_broadcast" needs BroadcastsWrite,
    DeleteBroadcast = "delete_broadcast" needs BroadcastsWrite,
    AddBroadcastContacts = "add_broadcast_contacts" needs BroadcastsWrite,
    SelectBroadcastContacts = "select_broadcast_contacts" needs BroadcastsWrite,
    GetBroadcastStatistics = "get_broadcast_statistics" needs BroadcastsRead,
    ImportBroadcastContacts = "import_broadcast_contacts" needs BroadcastsWrite,
    PreviewBroadcast = "preview_broadcast" needs BroadcastsRead,
    TestBroadcast = "test_broadcast" needs MessagesSend,
    CloneBroadcast = "clone_broadcast" needs BroadcastsWrite,
    EstimateBroadcast = "estimate_broadcast" needs BroadcastsRead,
    ExportBroadcastResults = "export_broadcast_results" needs BroadcastsRead,
    DeleteBroadcastContact = "delete_broadcast_contact" needs BroadcastsWrite,
    SendBroadcast = "send_broadcast" needs BroadcastsSend,
    ScheduleBroadcast = "schedule_broadcast" needs BroadcastsSend,
    PauseBroadcast = "pause_broadcast" needs BroadcastsSend,
    ResumeBroadcast = "resume_broadcast" needs BroadcastsSend,
    CancelBroadcast = "cancel_broadcast" needs BroadcastsSend,
    EscalateBroadcast = "escalate_broadcast" needs BroadcastsSend,
    RetryBroadcastReview = "retry_broadcast_review" needs BroadcastsSend,
    ListKeys = "list_keys" needs KeysRead,
    CreateKey = "create_key" needs KeysWrite,
    RevokeKey = "revoke_key" needs KeysWrite,
    ListAuditEntries = "list_audit_entries" needs AuditRead,
}

impl From<UseCase> for Permission {
    fn from(use_case: UseCase) -> Self {
        use_case.permission()
    }
}
