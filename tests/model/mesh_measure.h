// SPDX-License-Identifier: Apache-2.0
// What tests measure of a triangle mesh.
#ifndef DSNET_TESTS_MESH_MEASURE_H
#define DSNET_TESTS_MESH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Every directed edge occurs once and its reverse once (with `open`, at most once), and the faces
// around every vertex form one fan.
bool mesh_is_manifold(const uint32_t (*faces)[3], size_t face_count, size_t vertex_count,
                      bool open);

// V - E + F.
long mesh_euler(const uint32_t (*faces)[3], size_t face_count, size_t vertex_count);

// Enclosed volume, positive when the faces are counter-clockwise from outside.
double mesh_volume(const float (*points)[3], const uint32_t (*faces)[3], size_t face_count);

// Volume of the patch of faces for which `inside` [face_count] holds: each of its boundary loops is
// closed by a fan of triangles to the loop's mean point.
double mesh_patch_volume(const float (*points)[3], const uint32_t (*faces)[3], size_t face_count,
                         const bool *inside, size_t vertex_count);

// Normal times twice the area.
void mesh_face_normal(const float (*points)[3], const uint32_t face[3], double normal[3]);

// Smallest angle of a face, degrees.
double mesh_least_angle(const float (*points)[3], const uint32_t face[3]);

#endif
