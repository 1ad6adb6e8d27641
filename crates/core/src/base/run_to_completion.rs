//! Runs work that must finish even if its caller is dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Runs a future inside its caller; if the caller is dropped first, a task runs the rest.
pub(crate) struct RunToCompletion<T: Send + 'static>(Option<Work<T>>);

impl<T: Send + 'static> RunToCompletion<T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for RunToCompletion<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Taken meanwhile: a future that panicked must not be polled again.
        let Some(mut work) = self.0.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.0 = Some(work);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for RunToCompletion<T> {
    fn drop(&mut self) {
        if let (Some(rest), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(rest);
        }
    }
}
