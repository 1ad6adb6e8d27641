//! Wraps the SIP library, which only this file uses.
//!
//! All requests, including those within a call, are sent to the one address that the trunk's name resolved to: headers from the trunk never
//! redirect them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_domain::Ids;
use rsipstack::dialog::DialogId;
use rsipstack::dialog::authenticate::{Credential, handle_client_authenticate};
use rsipstack::dialog::dialog::{DialogState, DialogStateReceiver, TransactionHandle};
use rsipstack::dialog::dialog_layer::DialogLayer;
use rsipstack::dialog::invitation::{DialogGuard, InviteAsyncResult, InviteOption};
use rsipstack::dialog::invite_dialog::InviteDialog;
use rsipstack::platform::{CancellationToken, JoinHandle};
use rsipstack::sip::headers::CallId;
use rsipstack::sip::message::HasHeaders;
use rsipstack::sip::{
    Header, HeadersExt as _, Method, ProxyAuthenticate, Request, Response, SipMessage, StatusCode, StatusCodeKind, Transport as Wire, Uri,
    WwwAuthenticate, typed,
};
use rsipstack::transaction::endpoint::{EndpointInnerRef, MessageInspector};
use rsipstack::transaction::key::{TransactionKey, TransactionRole};
use rsipstack::transaction::transaction::Transaction;
use rsipstack::transaction::{EndpointBuilder, TransactionReceiver, make_tag};
use rsipstack::transport::transport_layer::DomainResolver;
use rsipstack::transport::udp::UdpConnection;
use rsipstack::transport::{SipAddr, TlsConfig, TransportLayer};
use tokio::net::UdpSocket;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::config::{Config, Transport};
use crate::keys;
use crate::map::{self, Refusal};

/// Timeout for responses to BYE and CANCEL.
const FAREWELL: Duration = Duration::from_secs(3);
/// Longest time for which a way stays open after its last use: somewhat more than any transaction lasts (64*T1, RFC 3261 §17).
const LINGER: Duration = Duration::from_secs(40);
/// How often to check whether it can be closed.
const LOOK: Duration = Duration::from_millis(200);

/// A request outside of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    /// Whether anybody is there.
    Presence,
    /// Whether the login is right: a REGISTER that registers nothing (RFC 3261 §10.2.3).
    Login,
}

/// The response to a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reply {
    /// Its final status.
    pub(crate) status: u16,
    /// Whether the trunk requested the login, and it was sent.
    pub(crate) challenged: bool,
}

/// A way to a trunk: a UDP port of ours and, with TCP or TLS, a connection.
pub(crate) struct Trunk {
    /// The trunk's address.
    pub(crate) address: SocketAddr,
    /// Our address as the trunk sees it.
    pub(crate) public: IpAddr,
    /// Our address on this machine.
    pub(crate) local: IpAddr,
    contact: Uri,
    domain: String,
    login: Option<Credential>,
    target: SipAddr,
    layer: Arc<DialogLayer>,
    endpoint: EndpointInnerRef,
    ids: Ids,
    open: CancellationToken,
}

/// Prevents the library from resolving names: addresses come from our guarded resolver.
struct NoNames;

#[async_trait]
impl DomainResolver for NoNames {
    async fn resolve(&self, target: &SipAddr) -> rsipstack::Result<SipAddr> {
        Err(rsipstack::Error::DnsResolutionError(target.to_string()))
    }
}

/// Makes challenges readable to the library, which fails without a final response on those that it cannot read.
struct Challenges;

impl MessageInspector for Challenges {
    fn before_send(&self, message: SipMessage, _: Option<&SipAddr>) -> SipMessage {
        message
    }

    fn after_received(&self, mut message: SipMessage, _: Option<&SipAddr>) -> SipMessage {
        if let SipMessage::Response(response) = &mut message
            && matches!(response.status_code, StatusCode::Unauthorized | StatusCode::ProxyAuthenticationRequired)
        {
            keep_readable(response);
        }
        message
    }
}

/// Keeps only the challenges that the library can answer.
fn keep_readable(response: &mut Response) {
    let headers = response.headers_mut();
    for header in headers.iter_mut() {
        if let Header::WwwAuthenticate(WwwAuthenticate(challenge)) | Header::ProxyAuthenticate(ProxyAuthenticate(challenge)) = header
            && let Some(simple) = without_list(challenge)
        {
            *challenge = simple;
        }
    }
    let is_challenge = |header: &Header| matches!(header, Header::WwwAuthenticate(_) | Header::ProxyAuthenticate(_));
    headers.retain(|header| !is_challenge(header) || typed::WwwAuthenticate::parse(header.value()).is_ok());
    if !headers.iter().any(is_challenge) {
        // The same number, but the library takes it for a refusal.
        response.status_code = StatusCode::Other(response.status_code.code(), "Unsupported Challenge".to_owned());
    }
}

/// The challenge with `auth` in place of a list such as `qop="auth,auth-int"` (RFC 2617 §3.2.1).
fn without_list(challenge: &str) -> Option<String> {
    let read = typed::tokenizers::AuthTokenizer::parse(challenge).ok()?;
    let (_, list) = read.params.iter().find(|(name, _)| name.eq_ignore_ascii_case("qop"))?;
    let has_auth = list.split(',').any(|item| item.trim().eq_ignore_ascii_case("auth"));
    has_auth.then(|| challenge.replacen(&format!("\"{list}\""), "\"auth\"", 1))
}

impl Drop for Trunk {
    fn drop(&mut self) {
        let (endpoint, open) = (self.endpoint.clone(), self.open.clone());
        let close = async move {
            // The end of a call is confirmed again to a trunk that missed it. Transactions that are cut off are never freed.
            let over = async {
                while endpoint.get_running_transactions().is_some_and(|running| !running.is_empty()) {
                    sleep(LOOK).await;
                }
            };
            timeout(LINGER, over).await.ok();
            open.cancel();
        };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(close)),
            Err(_) => self.open.cancel(),
        }
    }
}

/// The address of this machine from which `to` is reached.
async fn local_towards(to: SocketAddr) -> std::io::Result<IpAddr> {
    let any: IpAddr = if to.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() };
    let socket = UdpSocket::bind((any, 0)).await?;
    // Sends nothing: it only asks the table of routes.
    socket.connect(to).await?;
    Ok(socket.local_addr()?.ip())
}

/// Binds the first port of a range that is free.
async fn bind(local: IpAddr, (low, high): (u16, u16), open: &CancellationToken) -> Result<UdpConnection, String> {
    let mut refused = String::new();
    for port in low..=high {
        let place = SocketAddr::new(local, port);
        match UdpConnection::create_connection(place, None, Some(open.child_token())).await {
            Ok(udp) => return Ok(udp),
            Err(error) => refused = format!("no UDP port from {low} to {high} of this server can be opened: {place}: {error}"),
        }
    }
    Err(refused)
}

impl Trunk {
    /// Opens the first free one of the UDP ports, any port for 0; sends nothing yet.
    pub(crate) async fn open(config: &Config, address: SocketAddr, ports: (u16, u16), ids: Ids) -> Result<Self, String> {
        let local = local_towards(address).await.map_err(|error| format!("no route to {address}: {error}"))?;
        let open = CancellationToken::new();
        let mut udp = bind(local, ports, &open).await?;
        let public = config.public_address.unwrap_or(local);
        let mut here = udp.get_addr().clone();
        here.addr.host = public.into();
        if public != local {
            udp.external = Some(here.clone());
        }
        let (wire, suffix) = match config.transport {
            Transport::Udp => (Wire::Udp, ""),
            Transport::Tcp => (Wire::Tcp, ";transport=tcp"),
            Transport::Tls => (Wire::Tls, ";transport=tls"),
        };
        let target = SipAddr::new(wire, address.into());
        let mut transport = TransportLayer::new_with_domain_resolver(open.clone(), Box::new(NoNames));
        transport.outbound = Some(target.clone());
        transport.set_tls_config(TlsConfig {
            ca_certs: Some(config.roots.clone()),
            sni_hostname: Some(config.host.clone()),
            ..TlsConfig::default()
        });
        if !config.trusted {
            let trunk = address.ip();
            transport.set_whitelist(move |from: IpAddr| async move { from == trunk });
        }
        transport.add_transport(udp.into());
        let endpoint = EndpointBuilder::new()
            .with_user_agent(concat!("nuncio/", env!("CARGO_PKG_VERSION")))
            .with_inspector(Box::new(Challenges))
            .with_transport_layer(transport)
            .with_cancel_token(open.clone())
            .build();
        let incoming = endpoint.incoming_transactions().map_err(|error| error.to_string())?;
        let endpoint = endpoint.inner.clone();
        let layer = Arc::new(DialogLayer::new(endpoint.clone()));
        let serving = endpoint.clone();
        tokio::spawn(async move { serving.serve().await });
        let (answering, closed) = (answer_requests(incoming, Arc::clone(&layer)), open.clone());
        tokio::spawn(async move { closed.run_until_cancelled(answering).await });
        let contact = uri(&format!("sip:nuncio@{}{suffix}", here.addr))?;
        let login = config.login.as_ref().map(|(username, password)| Credential {
            username: username.clone(),
            password: password.expose().clone(),
            realm: None,
            auth_username: None,
        });
        let domain = bracketed(&config.domain);
        Ok(Self { address, public, local, contact, domain, login, target, layer, endpoint, ids, open })
    }

    /// Opens the connection, with TCP and TLS, unless it is open.
    pub(crate) async fn connect(&self, within: Duration) -> Result<(), String> {
        match timeout(within, self.endpoint.transport_layer.lookup(&self.target, None)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("no connection in time".to_owned()),
        }
    }

    /// Sends a request; `None` if there is no response in time.
    pub(crate) async fn ask(&self, question: Question, within: Duration) -> Option<Reply> {
        let request = self.question(question).ok()?;
        timeout(within, self.exchange(request)).await.ok()?.ok()?
    }

    fn question(&self, question: Question) -> Result<Request, String> {
        let method = if question == Question::Login { Method::Register } else { Method::Options };
        let user = self.login.as_ref().map_or("nuncio", |login| &login.username);
        let own = uri(&format!("sip:{user}@{}", self.domain))?;
        let server = uri(&format!("sip:{}", self.domain))?;
        let mut here = self.endpoint.transport_layer.get_listen_addrs().into_iter().next();
        if let Some(here) = &mut here {
            here.r#type = self.target.r#type;
        }
        let via = self.endpoint.get_via(here, None).map_err(|error| error.to_string())?;
        let from = typed::From { display_name: None, uri: own.clone(), params: Vec::new() }.with_tag(make_tag());
        let to = typed::To { display_name: None, uri: if question == Question::Login { own } else { server.clone() }, params: Vec::new() };
        let mut id = [0; 16];
        self.ids.entropy.fill(&mut id);
        let call = CallId::from(format!("nuncio-{:032x}", u128::from_be_bytes(id)));
        Ok(self.endpoint.make_request(method, server, via, from, to, 1, Some(call)))
    }

    async fn exchange(&self, request: Request) -> rsipstack::Result<Option<Reply>> {
        let key = TransactionKey::from_request(&request, TransactionRole::Client)?;
        let mut transaction = Transaction::new_client(key, request, self.endpoint.clone(), None);
        transaction.send().await?;
        let mut challenged = false;
        while let Some(message) = transaction.receive().await {
            let SipMessage::Response(response) = message else { continue };
            match (&response.status_code, &self.login) {
                (status, _) if status.kind() == StatusCodeKind::Provisional => {}
                (StatusCode::Unauthorized | StatusCode::ProxyAuthenticationRequired, Some(login)) if !challenged => {
                    transaction = handle_client_authenticate(2, &transaction, response, login).await?;
                    transaction.send().await?;
                    challenged = true;
                }
                (status, _) => return Ok(Some(Reply { status: status.code(), challenged })),
            }
        }
        Ok(None)
    }

    /// Starts a call; from now on the trunk can connect it.
    pub(crate) fn invite(&self, to: &str, from: &str, call_id: String, offer: String) -> Result<Call, String> {
        let (sender, states) = self.layer.new_dialog_state_channel();
        let option = InviteOption {
            caller: uri(&format!("sip:{from}@{}", self.domain))?,
            callee: uri(&format!("sip:{to}@{}", self.domain))?,
            // Over UDP, the way out is that of all requests.
            destination: (self.target.r#type != Some(Wire::Udp)).then(|| self.target.clone()),
            contact: self.contact.clone(),
            content_type: Some("application/sdp".to_owned()),
            offer: Some(offer.into_bytes()),
            credential: self.login.clone(),
            call_id: Some(call_id),
            ..InviteOption::default()
        };
        let (dialog, invitation) = self.layer.do_invite_async(option, sender).map_err(|error| error.to_string())?;
        Ok(Call { dialog, invitation: Some(invitation), states, early: String::new(), layer: Arc::clone(&self.layer), confirmed: None })
    }
}

fn uri(text: &str) -> Result<Uri, String> {
    Uri::try_from(text).map_err(|error| format!("{text:?} is not a SIP address: {error}"))
}

/// Puts an IPv6 address in brackets (RFC 3261 §25.1).
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// Passes requests of the other side to their calls. Rejects calls to us.
async fn answer_requests(mut incoming: TransactionReceiver, layer: Arc<DialogLayer>) {
    while let Some(mut transaction) = incoming.recv().await {
        let dialog = layer.match_dialog(&transaction);
        tokio::spawn(async move {
            let answered = match (dialog, &transaction.original.method) {
                (Some(mut dialog), _) => dialog.handle(&mut transaction).await,
                (None, Method::Ack) => Ok(()),
                (None, Method::Options) => transaction.reply(StatusCode::OK).await,
                (None, Method::Invite) => transaction.reply(StatusCode::TemporarilyUnavailable).await,
                (None, _) => transaction.reply(StatusCode::CallTransactionDoesNotExist).await,
            };
            // The other side repeats the request or gives up; nothing can be done here.
            drop(answered);
        });
    }
}

/// Progress of a call until it is answered.
pub(crate) enum Progress {
    /// The trunk has it; the phone may be ringing.
    Underway,
    /// Answered. The description is that of the response, or of the last one before it.
    Answered(String),
    /// It was not put through.
    Refused(Refusal),
    /// The trunk's response is invalid.
    Broken(String),
}

/// An event in an answered call.
pub(crate) enum Event {
    /// The other side hung up.
    HungUp,
    /// A key was pressed, reported by a separate request.
    Key(char),
    /// The target of sound changes to this description. To be answered with ours. An empty one asks for our offer (RFC 3261 §14.2).
    Moved(String, Answering),
}

/// Returns a request with a description.
pub(crate) struct Answering(TransactionHandle);

impl Answering {
    pub(crate) async fn agree(self, description: String) {
        let headers = vec![Header::ContentType("application/sdp".into())];
        // It fails only if the request is gone.
        self.0.respond(StatusCode::OK, Some(headers), Some(description.into_bytes())).await.ok();
    }

    pub(crate) async fn refuse(self) {
        self.0.reply(StatusCode::NotAcceptableHere).await.ok();
    }
}

/// How cancelling ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cancelled {
    /// Not answered yet.
    InTime,
    /// Someone picked up at the same moment; they were hung up on.
    TooLate,
    /// The trunk stopped responding.
    Silence,
}

/// A call. Dropping it hangs up.
pub(crate) struct Call {
    dialog: InviteDialog,
    invitation: Option<JoinHandle<InviteAsyncResult>>,
    states: DialogStateReceiver,
    early: String,
    layer: Arc<DialogLayer>,
    /// Hangs up when it is dropped.
    confirmed: Option<(DialogId, DialogGuard)>,
}

impl Drop for Call {
    fn drop(&mut self) {
        // Aborting the task lets the library cancel the INVITE as soon as permitted.
        if let Some(invitation) = &self.invitation {
            invitation.abort();
        }
    }
}

impl Call {
    /// Waits for progress before the call is answered. Call it again only after [`Progress::Underway`].
    pub(crate) async fn progress(&mut self) -> Progress {
        let Some(invitation) = &mut self.invitation else { return Progress::Broken("the call is over".to_owned()) };
        loop {
            let ended = tokio::select! {
                biased;
                Some(state) = self.states.recv() => {
                    match state {
                        DialogState::Early(_, response) => {
                            if !response.body.is_empty() {
                                self.early = String::from_utf8_lossy(&response.body).into_owned();
                            }
                            return Progress::Underway;
                        }
                        DialogState::Trying(_) => return Progress::Underway,
                        _ => continue,
                    }
                }
                ended = &mut *invitation => ended,
            };
            self.invitation = None;
            return match ended {
                Ok(Ok((id, Some(response)))) => self.ended(id, &response),
                Ok(Ok((_, None))) => Progress::Broken("the trunk sent no final response".to_owned()),
                Ok(Err(error)) => Progress::Broken(format!("the trunk's response is invalid: {error}")),
                Err(error) => Progress::Broken(error.to_string()),
            };
        }
    }

    fn ended(&mut self, id: DialogId, response: &Response) -> Progress {
        if response.status_code.kind() != StatusCodeKind::Successful {
            return Progress::Refused(refusal(response));
        }
        self.confirmed = Some((id.clone(), DialogGuard::new(&self.layer, id)));
        let body = String::from_utf8_lossy(&response.body).into_owned();
        Progress::Answered(if body.is_empty() { std::mem::take(&mut self.early) } else { body })
    }

    /// Stops ringing.
    pub(crate) async fn cancel(mut self) -> Cancelled {
        let dialog = self.dialog.clone();
        // It waits for a response that is not needed.
        tokio::spawn(async move { dialog.cancel().await });
        let last = async {
            loop {
                match self.progress().await {
                    Progress::Underway => {}
                    Progress::Refused(_) => return Cancelled::InTime,
                    Progress::Answered(_) => return Cancelled::TooLate,
                    Progress::Broken(_) => return Cancelled::Silence,
                }
            }
        };
        timeout(FAREWELL, last).await.unwrap_or(Cancelled::Silence)
    }

    /// Waits for an event in the call.
    pub(crate) async fn event(&mut self) -> Event {
        loop {
            match self.states.recv().await {
                None | Some(DialogState::Terminated(..)) => return Event::HungUp,
                Some(DialogState::Info(_, request, handle)) => {
                    handle.reply(StatusCode::OK).await.ok();
                    let content_type = request.header_value("Content-Type").unwrap_or_default();
                    if let Some(key) = keys::of_info(&content_type, &String::from_utf8_lossy(&request.body)) {
                        return Event::Key(key);
                    }
                }
                Some(DialogState::Updated(_, request, handle)) if request.body.is_empty() && request.method != Method::Invite => {
                    // An UPDATE without a body only checks that the call is still active (RFC 4028).
                    handle.reply(StatusCode::OK).await.ok();
                }
                Some(DialogState::Updated(_, request, handle)) => {
                    return Event::Moved(String::from_utf8_lossy(&request.body).into_owned(), Answering(handle));
                }
                Some(DialogState::Options(_, _, handle)) => {
                    handle.reply(StatusCode::OK).await.ok();
                }
                Some(_) => {}
            }
        }
    }

    /// Hangs up, and waits briefly for the response.
    pub(crate) async fn hang_up(self) {
        timeout(FAREWELL, self.dialog.bye()).await.ok();
        if let Some((id, _)) = &self.confirmed {
            // Otherwise the library keeps it forever.
            self.layer.remove_dialog(id);
            debug_assert!(self.layer.get_dialog(id).is_none());
        }
    }
}

fn refusal(response: &Response) -> Refusal {
    let reasons = response.headers().iter().filter(|h| h.name().eq_ignore_ascii_case("Reason"));
    Refusal {
        status: response.status_code.code(),
        cause: reasons.filter_map(|h| map::cause(h.value())).next(),
        retry_after: response.header_value("Retry-After").and_then(|value| map::retry_after(&value)),
        is_unsupported: matches!(response.status_code, StatusCode::Other(401 | 407, _)),
    }
}
