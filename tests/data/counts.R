# How counts.csv and counts_lme4.csv were made: random-intercept models of clicks and counts by lme4, whose likelihood is
# exact to many digits with 50 quadrature points. cbpp (cases of a disease in herds) and grouseticks (ticks on the chicks
# of a brood) are lme4's own. Run from this folder: Rscript counts.R
library(lme4)
digits <- function(x) formatC(x, digits = 17, format = "g")
tight <- glmerControl(optimizer = "bobyqa", optCtrl = list(maxfun = 1e6, rhoend = 1e-10), tolPwrss = 1e-13)
data(cbpp)
data(grouseticks)
fits <- list(
  cbpp = glmer(cbind(incidence, size - incidence) ~ 1 + (1 | herd), cbpp, binomial, nAGQ = 50, control = tight),
  ticks = glmer(TICKS ~ 1 + (1 | BROOD), grouseticks, poisson, nAGQ = 50, control = tight)
)
herds <- aggregate(cbind(total = incidence, exposure = size) ~ herd, cbpp, sum)
grouseticks$one <- 1
broods <- aggregate(cbind(total = TICKS, exposure = one) ~ BROOD, grouseticks, sum)
counts <- rbind(
  data.frame(data = "cbpp", group = herds$herd, herds[c("total", "exposure")]),
  data.frame(data = "ticks", group = broods$BROOD, broods[c("total", "exposure")])
)
write.csv(counts, "counts.csv", row.names = FALSE, quote = FALSE)
rows <- lapply(names(fits), function(name) {
  data.frame(
    data = name, what = c("mean", "variance"),
    value = digits(c(fixef(fits[[name]]), as.data.frame(VarCorr(fits[[name]]))$vcov))
  )
})
version <- data.frame(data = "lme4", what = "version", value = as.character(packageVersion("lme4")))
write.csv(do.call(rbind, c(rows, list(version))), "counts_lme4.csv", row.names = FALSE, quote = FALSE)
