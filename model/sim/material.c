// SPDX-License-Identifier: Apache-2.0
#include "sim/material.h"

double material_shear(const struct material *material) {
  return material->young / (2 * (1 + material->poisson));
}

double material_lambda(const struct material *material) {
  return 2 * material_shear(material) * material->poisson / (1 - 2 * material->poisson);
}
