"""The dashboard: a page of plain files that reads numbers from the service, or has them in it; see `page`."""
