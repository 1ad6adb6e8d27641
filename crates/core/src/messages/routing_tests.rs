use nuncio_domain::Environment;
