# How pastes.csv and pastes_lme4.csv were made: lme4's Pastes data, its REML fit of the nested model, and its conditional
# modes given those variances. Run from this folder: Rscript pastes.R
library(lme4)
data(Pastes)
fit <- lmer(strength ~ 1 + (1 | batch / cask), Pastes, control = lmerControl(optCtrl = list(maxfun = 1e6)))
digits <- function(x) formatC(x, digits = 17, format = "g")
write.csv(
  data.frame(batch = Pastes$batch, cask = Pastes$cask, strength = digits(Pastes$strength)),
  "pastes.csv", row.names = FALSE, quote = FALSE
)
variances <- as.data.frame(VarCorr(fit))$vcov
names(variances) <- as.data.frame(VarCorr(fit))$grp
modes <- ranef(fit)
write.csv(
  rbind(
    data.frame(kind = "mean", name = "", value = digits(fixef(fit))),
    data.frame(kind = "variance", name = names(variances), value = digits(variances)),
    data.frame(kind = "mode", name = rownames(modes$batch), value = digits(modes$batch[, 1])),
    data.frame(kind = "mode", name = rownames(modes$`cask:batch`), value = digits(modes$`cask:batch`[, 1])),
    data.frame(kind = "version", name = "lme4", value = as.character(packageVersion("lme4")))
  ),
  "pastes_lme4.csv", row.names = FALSE, quote = FALSE
)
