// SPDX-License-Identifier: Apache-2.0
// The law by which soft tissue resists: near-incompressible, stiffening, viscoelastic, and safe
// under inversion.
//
// With F = I + G the deformation gradient relative to the skinned body, I_C = |F|^2, J = det F:
//
//   elastic energy density   W = mu/2 (m + b/2 max(0, m)^2) + lambda'/2 (J - 1)^2
//   distortion               m = I_C - 1 - 2 J   (zero at rest, of second order in the strain)
//
// which for b = 0 is the stable neo-Hookean energy of Smith, De Goes and Kim 2018 ("Stable
// Neo-Hookean Flesh Simulation", equation 14) rearranged; lambda' = lambda + mu makes mu and lambda
// the Lame constants at small strain. b is the stiffening: simple shear by an angle g gives m = g^2
// and a secant modulus mu (1 + b g^2). It stops growing at m = MATERIAL_DISTORTION_MAX, so that the
// stiffness of torn-looking elements stays finite. One Maxwell branch of modulus mu r in parallel
// (a standard linear solid, strain driven by the Green strain E) damps:
//
//   S_v = 2 mu r H,   dH/dt = dE/dt - H / tau.
#ifndef DSNET_SIM_MATERIAL_H
#define DSNET_SIM_MATERIAL_H

#define MATERIAL_DISTORTION_MAX 2.0

struct material {
  double young;      // Pa, the slow (relaxed) modulus at small strain
  double poisson;    // 0 .. 0.495
  double density;    // kg/m^3
  double stiffening; // b
  double relaxing;   // r, the share of the shear modulus that relaxes
};

// The Lame constants (Pa) of a material at small strain.
double material_shear(const struct material *material);
double material_lambda(const struct material *material);

#endif
