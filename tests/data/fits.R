# How fits_lme4.csv, plates.csv and dyestuff2.csv were made: plain maximum-likelihood fits of nested models by lme4.
# Pastes is lme4's own (pastes.R writes it), and so is Dyestuff2, whose batches have no variance. plates.csv is drawn here: like
# Penicillin, 24 plates with 6 samples each, but nested and with 1 to 4 measurements of a sample. Run from this folder: Rscript fits.R
library(lme4)
digits <- function(x) formatC(x, digits = 17, format = "g")
set.seed(6)
plates <- expand.grid(sample = LETTERS[1:6], plate = letters[1:24])
plates <- plates[rep(seq_len(nrow(plates)), sample(1:4, nrow(plates), replace = TRUE)), c("plate", "sample")]
inner <- interaction(plates$plate, plates$sample, drop = TRUE)
plates$diameter <- 23 + rnorm(24, sd = 0.85)[plates$plate] + rnorm(nlevels(inner), sd = 1.9)[inner] + rnorm(nrow(plates), sd = 0.55)
tight <- lmerControl(
  optimizer = "bobyqa", optCtrl = list(maxfun = 1e6, rhoend = 1e-12), check.conv.singular = "ignore"
)
fits <- list(
  pastes = lmer(strength ~ 1 + (1 | batch / cask), Pastes, REML = FALSE, control = tight),
  plates = lmer(diameter ~ 1 + (1 | plate / sample), plates, REML = FALSE, control = tight),
  dyestuff2 = lmer(Yield ~ 1 + (1 | Batch), Dyestuff2, REML = FALSE, control = tight)
)
rows <- lapply(names(fits), function(name) {
  variances <- as.data.frame(VarCorr(fits[[name]]))
  rbind(
    data.frame(data = name, what = "mean", value = digits(fixef(fits[[name]]))),
    data.frame(data = name, what = variances$grp, value = digits(variances$vcov)),
    data.frame(data = name, what = "log likelihood", value = digits(as.numeric(logLik(fits[[name]]))))
  )
})
version <- data.frame(data = "lme4", what = "version", value = as.character(packageVersion("lme4")))
write.csv(do.call(rbind, c(rows, list(version))), "fits_lme4.csv", row.names = FALSE, quote = FALSE)
plates$diameter <- digits(plates$diameter)
write.csv(plates, "plates.csv", row.names = FALSE, quote = FALSE)
write.csv(data.frame(batch = Dyestuff2$Batch, yield = digits(Dyestuff2$Yield)), "dyestuff2.csv", row.names = FALSE, quote = FALSE)
