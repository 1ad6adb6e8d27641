//! Two lanes, one for new messages and one for steps, each a task with a connection of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nuncio_domain::lifecycle::{Applied, Step, Wait};
use nuncio_store::{Accepted, Result, StoreError, Transition, Transitioned};
use parking_lot::Mutex;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::hot;
use super::recent::Recent;
use crate::hot::{AcceptOp, Op, Prepared, TransitionOp};
use crate::lane::{BATCH, WAITING, answer, closed, full, may_be_one_item};
use crate::sqlx_error;

/// How often a batch that lost a deadlock is tried again.
const RETRIES: u32 = 5;
/// How long to wait before a lost server is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// Every statement of a lane finds its rows by key. A plan is made once, before the tables have grown and statistics are there: it
/// must not be one that reads whole tables.
const PLANS: [(&str, &str); 5] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
];

#[derive(Debug)]
pub(super) struct Lanes {
    accepts: mpsc::Sender<AcceptOp>,
    transitions: mpsc::Sender<TransitionOp>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    closing: tokio::sync::watch::Sender<bool>,
}

impl Lanes {
    pub(super) fn start(options: PgConnectOptions) -> Self {
        let options = options.options(PLANS);
        let (closing, closed) = tokio::sync::watch::channel(false);
        let (accepts, accepted) = mpsc::channel(WAITING);
        let (transitions, transitioned) = mpsc::channel(WAITING);
        let lane = Lane { options, conn: None, closing: closed, recent: Arc::default() };
        let first = tokio::spawn(lane.sibling().run(accepted));
        let second = tokio::spawn(lane.run(transitioned));
        Self { accepts, transitions, tasks: Mutex::new(vec![first, second]), closing }
    }

    pub(super) async fn accept(&self, item: Box<Prepared>) -> Result<Accepted> {
        enqueue(&self.accepts, item).await
    }

    pub(super) async fn transition(&self, item: Transition) -> Result<Transitioned> {
        enqueue(&self.transitions, item).await
    }

    pub(super) async fn stop(&self) {
        self.closing.send_replace(true);
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            let _ = task.await;
        }
    }
}

async fn enqueue<I, O>(lane: &mpsc::Sender<Op<I, O>>, item: I) -> Result<O> {
    let (reply, answer) = oneshot::channel();
    lane.try_send(Op { item, reply }).map_err(|e| match e {
        mpsc::error::TrySendError::Full(_) => full(),
        mpsc::error::TrySendError::Closed(_) => closed(),
    })?;
    answer.await.unwrap_or_else(|_| Err(closed()))
}

/// One kind of item, as a lane runs it.
trait Kind: Sized + Send + Sync {
    type Answer: Send;

    /// How long a lost database may take to tell what became of a commit.
    const PATIENCE: Duration;

    /// Runs a batch.
    fn run(
        conn: &mut PgConnection,
        recent: &Recent,
        batch: &[Op<Self, Self::Answer>],
    ) -> impl Future<Output = Result<Vec<Self::Answer>, Trouble>> + Send;

    /// Answers what can be written in a shorter way, which is on disk then; the rest is left to [`Self::run`].
    fn at_once(
        _conn: &mut PgConnection,
        _recent: &Recent,
        batch: &[Op<Self, Self::Answer>],
    ) -> impl Future<Output = Result<Vec<Option<Self::Answer>>, Trouble>> + Send {
        let nothing = batch.iter().map(|_| None).collect();
        async { Ok(nothing) }
    }

    /// After a commit whose outcome was lost: what one item's answer is, if it was written after all.
    fn read_back(conn: &mut PgConnection, op: &Op<Self, Self::Answer>) -> impl Future<Output = Result<Option<Self::Answer>>> + Send;
}

impl Kind for Box<Prepared> {
    type Answer = Accepted;

    /// Clients wait for it.
    const PATIENCE: Duration = Duration::from_secs(20);

    async fn run(conn: &mut PgConnection, recent: &Recent, batch: &[AcceptOp]) -> Result<Vec<Accepted>, Trouble> {
        hot::accept(conn, recent, batch).await
    }

    async fn read_back(conn: &mut PgConnection, op: &AcceptOp) -> Result<Option<Accepted>> {
        hot::written(conn, &op.item).await
    }
}

impl Kind for Transition {
    type Answer = Transitioned;

    /// A start that was written and is believed not to be would leave its message to nobody.
    const PATIENCE: Duration = Duration::MAX;

    async fn at_once(conn: &mut PgConnection, recent: &Recent, batch: &[TransitionOp]) -> Result<Vec<Option<Transitioned>>, Trouble> {
        hot::facts_at_once(conn, recent, batch).await
    }

    async fn run(conn: &mut PgConnection, recent: &Recent, batch: &[TransitionOp]) -> Result<Vec<Transitioned>, Trouble> {
        hot::transition(conn, recent, batch).await
    }

    async fn read_back(conn: &mut PgConnection, op: &TransitionOp) -> Result<Option<Transitioned>> {
        // Facts and all decisions but a start can be applied once more: the second time finds them done. A start that was written
        // shows as ours, one fence further.
        let Step::Start { node, fence, .. } = op.item.step else { return Ok(None) };
        let Some(message) = hot::whole(conn, op.item.tenant, op.item.id).await? else { return Ok(Some(Transitioned::Missing)) };
        let ours = message.state.wait == (Wait::Owned { node }) && message.state.fence == fence + 1;
        Ok(ours.then(|| Transitioned::Found {
            applied: Applied::Yes,
            state: Box::new(message.state.clone()),
            changes: Vec::new(),
            address: message.address,
            message: Some(Box::new(message)),
        }))
    }
}

/// Why a batch has no answers.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It was not written.
    Refused(StoreError),
    /// It may have been written.
    LostCommit(sqlx::Error),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl Trouble {
    /// What went wrong with a statement that commits. A server that answers says no.
    pub(super) fn of_commit(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(_) => Self::Refused(sqlx_error(error)),
            error => Self::LostCommit(error),
        }
    }

    /// The same of a statement inside a transaction, with which everything is undone.
    pub(super) fn into_store(self) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::LostCommit(error) => sqlx_error(error),
        }
    }

    /// A row that exists already, after a commit got no answer, is the row that it wrote after all.
    fn may_be_written(&self, lost: bool) -> bool {
        matches!(self, Self::LostCommit(_)) || lost && matches!(self, Self::Refused(StoreError::Conflict(_)))
    }
}

#[derive(Debug)]
struct Lane {
    options: PgConnectOptions,
    conn: Option<PgConnection>,
    closing: tokio::sync::watch::Receiver<bool>,
    recent: Arc<Recent>,
}

impl Lane {
    /// One more lane with a connection of its own.
    fn sibling(&self) -> Self {
        let Self { options, closing, recent, .. } = self;
        Self { options: options.clone(), conn: None, closing: closing.clone(), recent: Arc::clone(recent) }
    }

    async fn run<I>(mut self, mut queue: mpsc::Receiver<Op<I, I::Answer>>)
    where
        I: Kind,
    {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                biased;
                taken = queue.recv_many(&mut batch, BATCH) => if taken == 0 { return },
                _ = self.closing.wait_for(|closing| *closing) => { queue.close(); continue }
            }
            self.serve(std::mem::take(&mut batch)).await;
        }
    }

    /// Runs a batch and answers it. A batch that one item spoils is halved until that item stands alone. Of a batch whose commit
    /// got no answer, what the rows do not show as written is run once more.
    async fn serve<I>(&mut self, batch: Vec<Op<I, I::Answer>>)
    where
        I: Kind,
    {
        let rest = self.at_once(batch).await;
        let (mut stack, mut lost) = (Vec::from_iter(Some(rest).filter(|rest| !rest.is_empty())), 0);
        while let Some(mut batch) = stack.pop() {
            match self.attempt(&batch).await {
                Ok(answers) => answer(batch, Ok(answers)),
                Err(Trouble::Refused(error)) if may_be_one_item(&error) && batch.len() > 1 => {
                    let rest = batch.split_off(batch.len() / 2);
                    stack.extend([rest, batch]);
                }
                Err(trouble) if lost < RETRIES && trouble.may_be_written(lost > 0) => {
                    tracing::warn!(?trouble, items = batch.len(), "a commit got no answer");
                    lost += 1;
                    let rest = self.read_back(batch).await;
                    stack.extend(Some(rest).filter(|rest| !rest.is_empty()));
                }
                Err(Trouble::Refused(error)) => fail(batch, error),
                Err(Trouble::LostCommit(error)) => fail(batch, StoreError::InDoubt(error.to_string())),
            }
        }
    }

    /// Answers what [`Kind::at_once`] writes; whatever goes wrong there, the long way finds out.
    async fn at_once<I>(&mut self, batch: Vec<Op<I, I::Answer>>) -> Vec<Op<I, I::Answer>>
    where
        I: Kind,
    {
        let Some(mut conn) = self.conn.take() else { return batch };
        let Ok(answers) = I::at_once(&mut conn, &self.recent, &batch).await else { return batch };
        self.conn = Some(conn);
        let mut rest = Vec::new();
        for (op, written) in batch.into_iter().zip(answers) {
            match written {
                Some(written) => answer(vec![op], Ok(vec![written])),
                None => rest.push(op),
            }
        }
        rest
    }

    async fn attempt<I>(&mut self, batch: &[Op<I, I::Answer>]) -> Result<Vec<I::Answer>, Trouble>
    where
        I: Kind,
    {
        let mut tries = 0;
        loop {
            match self.once(batch).await {
                Err(Trouble::Refused(StoreError::Busy(_))) if tries < RETRIES => tries += 1,
                // Another node made the address of a new recipient, which now is known.
                Err(Trouble::Refused(StoreError::Conflict(_))) if tries == 0 => tries += 1,
                // The server restarted or dropped an idle connection; nothing of this batch was committed.
                Err(Trouble::Refused(StoreError::Unavailable(_))) if tries == 0 => tries += 1,
                outcome => return outcome,
            }
        }
    }

    async fn once<I>(&mut self, batch: &[Op<I, I::Answer>]) -> Result<Vec<I::Answer>, Trouble>
    where
        I: Kind,
    {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => open(&self.options).await?,
        };
        let outcome = I::run(&mut conn, &self.recent, batch).await;
        if !matches!(outcome, Err(Trouble::LostCommit(_) | Trouble::Refused(StoreError::Unavailable(_)))) {
            self.conn = Some(conn);
        }
        outcome
    }

    /// The commit got no answer: it may or may not have happened. The rows themselves tell, once the server is back. Answers the
    /// items that they show as written, and returns the others.
    async fn read_back<I>(&mut self, batch: Vec<Op<I, I::Answer>>) -> Vec<Op<I, I::Answer>>
    where
        I: Kind,
    {
        let (began, mut rest) = (Instant::now(), Vec::new());
        for op in batch {
            loop {
                match self.read_one(&op).await {
                    Ok(Some(written)) => answer(vec![op], Ok(vec![written])),
                    Ok(None) => rest.push(op),
                    Err(StoreError::Busy(_) | StoreError::Unavailable(_)) if began.elapsed() < I::PATIENCE && !*self.closing.borrow() => {
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                    Err(error) => fail(vec![op], StoreError::InDoubt(error.to_string())),
                }
                break;
            }
        }
        rest
    }

    async fn read_one<I: Kind>(&mut self, op: &Op<I, I::Answer>) -> Result<Option<I::Answer>> {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => open(&self.options).await?,
        };
        let written = I::read_back(&mut conn, op).await?;
        self.conn = Some(conn);
        Ok(written)
    }
}

fn fail<I, O>(batch: Vec<Op<I, O>>, error: StoreError) {
    tracing::error!(%error, items = batch.len(), "a batch was not written");
    answer(batch, Err(error));
}

async fn open(options: &PgConnectOptions) -> Result<PgConnection> {
    let connecting = PgConnection::connect_with(options);
    match tokio::time::timeout(Duration::from_secs(5), connecting).await {
        Ok(conn) => conn.map_err(sqlx_error),
        Err(_) => Err(StoreError::Unavailable("the PostgreSQL server does not answer".to_owned())),
    }
}
