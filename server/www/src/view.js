// SPDX-License-Identifier: Apache-2.0
// The picture: two bodies, without and with displacement, on a studio floor; drawn side by side, to both sides of a
// divider, or the displaced one alone.
import {
  ACESFilmicToneMapping, BufferAttribute, BufferGeometry, CircleGeometry, DirectionalLight, DynamicDrawUsage, Group,
  HemisphereLight, Mesh, MeshStandardMaterial, PCFSoftShadowMap, PerspectiveCamera, Scene, ShaderMaterial, ShadowMaterial,
  Vector2, Vector3, WebGLRenderer,
} from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";

const HOME = new Vector3(1.05, 1.3, 4.35), TARGET = new Vector3(0, 0.9, 0);
const BOTTOM = 96; // pixels under which the picture is covered by controls
const CLAY = 0xc7b3a3;

// The ramp of the legend in page.css, over the clay of the body.
const HEAT_VERTEX = `attribute float magnitude; varying float vMagnitude; uniform float uRange;`;
const HEAT_FRAGMENT = `varying float vMagnitude; uniform float uHeat;
vec3 hex(float r, float g, float b) { return pow(vec3(r, g, b) / 255.0, vec3(2.2)); }
vec3 ramp(float x, vec3 clay) {
  vec3 a = hex(242.0, 193.0, 78.0), b = hex(243.0, 114.0, 44.0), c = hex(209.0, 17.0, 73.0), d = hex(106.0, 27.0, 154.0);
  x = clamp(x, 0.0, 1.0) * 4.0;
  return x < 1.0 ? mix(clay, a, x) : x < 2.0 ? mix(a, b, x - 1.0) : x < 3.0 ? mix(b, c, x - 2.0) : mix(c, d, x - 3.0);
}`;

function bodyMaterial(uniforms) {
  const material = new MeshStandardMaterial({ color: CLAY, roughness: 0.5 });
  material.onBeforeCompile = (shader) => {
    Object.assign(shader.uniforms, uniforms);
    shader.vertexShader = `${HEAT_VERTEX}\n` + shader.vertexShader.replace("#include <begin_vertex>",
      "#include <begin_vertex>\nvMagnitude = magnitude / uRange;");
    shader.fragmentShader = `${HEAT_FRAGMENT}\n` + shader.fragmentShader.replace("#include <color_fragment>",
      "#include <color_fragment>\ndiffuseColor.rgb = mix(diffuseColor.rgb, ramp(vMagnitude, diffuseColor.rgb), uHeat);");
  };
  return material;
}

// A floor that fades into the dark, with lines half a metre apart that pass under a walking body.
function floor() {
  const material = new ShaderMaterial({
    transparent: true, depthWrite: false, uniforms: { uOffset: { value: new Vector2() } },
    vertexShader: `varying vec2 vAt; void main() { vAt = position.xy; gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0); }`,
    fragmentShader: `varying vec2 vAt; uniform vec2 uOffset;
      void main() {
        vec2 at = (vAt + uOffset) * 2.0, width = fwidth(at) * 1.2, near = abs(fract(at - 0.5) - 0.5);
        vec2 line = 1.0 - smoothstep(vec2(0.0), width, near);
        float fade = pow(max(0.0, 1.0 - length(vAt) / 4.0), 2.0), seen = max(line.x, line.y) * 0.2;
        gl_FragColor = vec4(mix(vec3(0.20, 0.23, 0.27), vec3(0.75, 0.8, 0.88), seen), fade * (0.55 + seen));
      }`,
  });
  const group = new Group();
  const lines = new Mesh(new CircleGeometry(4, 64), material);
  const shadow = new Mesh(new CircleGeometry(4, 64), new ShadowMaterial({ opacity: 0.42 }));
  lines.renderOrder = -2;
  shadow.renderOrder = -1;
  shadow.position.z = 0.001;
  shadow.receiveShadow = true;
  group.add(lines, shadow);
  group.offset = material.uniforms.uOffset.value;
  return group;
}

function lights(scene) {
  const key = new DirectionalLight(0xfff1e0, 2.7), rim = new DirectionalLight(0xa9c8ff, 1.7);
  const fill = new DirectionalLight(0xdfe9ff, 0.5);
  key.position.set(2.2, 3.6, 2.6);
  rim.position.set(-2.4, 2.4, -2.8);
  fill.position.set(-3, 1, 2.5);
  key.castShadow = true;
  key.shadow.mapSize.set(1024, 1024);
  key.shadow.radius = 5;
  key.shadow.intensity = 0.7;
  key.shadow.bias = -0.0004;
  key.shadow.normalBias = 0.012;
  Object.assign(key.shadow.camera, { left: -1.6, right: 1.6, top: 2.4, bottom: -1.2, near: 1, far: 9 });
  scene.add(key, rim, fill, new HemisphereLight(0xdfe8f5, 0x5a4a3c, 0.85));
}

export class View {
  // Throws when there is no WebGL 2.
  constructor(canvas) {
    this.canvas = canvas;
    this.renderer = new WebGLRenderer({ canvas, antialias: true, alpha: true, powerPreference: "high-performance" });
    this.renderer.toneMapping = ACESFilmicToneMapping;
    this.renderer.toneMappingExposure = 1.05;
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = PCFSoftShadowMap;
    this.renderer.setScissorTest(true);
    this.scene = new Scene();
    lights(this.scene);
    this.camera = new PerspectiveCamera(30, 1, 0.05, 40);
    this.controls = new OrbitControls(this.camera, canvas);
    Object.assign(this.controls, { enableDamping: true, dampingFactor: 0.12, minDistance: 0.4, maxDistance: 12,
                                   maxPolarAngle: 0.53 * Math.PI });
    this.controls.addEventListener("change", () => { this.stale = true; });
    this.home();
    this.world = new Group(); // z-up, as poses are
    this.world.rotation.x = -Math.PI / 2;
    this.floor = floor();
    this.world.add(this.floor);
    this.scene.add(this.world);
    this.heat = { uHeat: { value: 1 }, uRange: { value: 0.02 } };
    this.mode = "side";
    this.split = 0.5;
  }

  set({ mode = this.mode, split = this.split, heat = this.heat.uHeat.value, range = this.heat.uRange.value }) {
    Object.assign(this, { mode, split, stale: true });
    this.heat.uHeat.value = heat;
    this.heat.uRange.value = range;
  }

  setBody(vertices, faces) {
    this.bodies = ["bare", "moved"].map((name) => {
      const geometry = new BufferGeometry();
      for (const [attribute, width] of [["position", 3], ["normal", 3], ["magnitude", 1]])
        geometry.setAttribute(attribute, new BufferAttribute(new Float32Array(width * vertices), width).setUsage(DynamicDrawUsage));
      geometry.setIndex(new BufferAttribute(faces, 1));
      const uniforms = name === "bare" ? { uHeat: { value: 0 }, uRange: this.heat.uRange } : this.heat;
      const mesh = new Mesh(geometry, bodyMaterial(uniforms));
      mesh.castShadow = mesh.receiveShadow = true;
      mesh.frustumCulled = false;
      mesh.visible = false;
      this.world.add(mesh);
      return mesh;
    });
  }

  // What the worker made, [V][3] and [V] metres; `trans` is where the root stands in the clip's world.
  setFrame({ bare, bareNormals, moved, movedNormals, magnitude }, trans) {
    for (const [mesh, positions, normals] of [[this.bodies[0], bare, bareNormals], [this.bodies[1], moved, movedNormals]]) {
      const { position, normal } = mesh.geometry.attributes;
      position.array.set(positions);
      normal.array.set(normals);
      position.needsUpdate = normal.needsUpdate = true;
    }
    const attribute = this.bodies[1].geometry.attributes.magnitude;
    attribute.array.set(magnitude);
    attribute.needsUpdate = true;
    this.floor.offset.set(trans[0], trans[1]);
    this.filled = this.stale = true;
  }

  home() {
    this.camera.position.copy(HOME);
    this.controls.target.copy(TARGET);
    this.controls.update();
  }

  // Angles in radians, `zoom` a factor, `x` and `y` metres.
  move({ azimuth = 0, polar = 0, zoom = 1, x = 0, y = 0 }) {
    const offset = this.camera.position.clone().sub(this.controls.target);
    const side = new Vector3(1, 0, 0).applyQuaternion(this.camera.quaternion).multiplyScalar(x);
    const up = new Vector3(0, 1, 0).applyQuaternion(this.camera.quaternion).multiplyScalar(y);
    offset.applyAxisAngle(new Vector3(0, 1, 0), azimuth);
    offset.applyAxisAngle(new Vector3(1, 0, 0).applyQuaternion(this.camera.quaternion), polar).multiplyScalar(zoom);
    this.controls.target.add(side).add(up);
    this.camera.position.copy(this.controls.target).add(offset);
    this.controls.update();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas, ratio = Math.min(devicePixelRatio, 2);
    if (this.width === width && this.height === height && this.renderer.getPixelRatio() === ratio) return;
    [this.width, this.height] = [width, height];
    this.renderer.setPixelRatio(ratio);
    this.renderer.setSize(width, height, false);
    this.stale = true;
  }

  // One of the bodies, within [x, x + width) of the picture; the camera's view fills [from, from + span).
  drawPart(body, x, width, from, span) {
    this.bodies.forEach((mesh, i) => { mesh.visible = i === body; });
    this.camera.aspect = span / this.height;
    // A narrow view steps back, so that the body fits into it.
    this.camera.zoom = Math.min(1, 1.25 * this.camera.aspect);
    this.camera.setViewOffset(span, this.height, 0, BOTTOM / 2, span, this.height); // also updates the projection
    this.renderer.setViewport(from, 0, span, this.height);
    this.renderer.setScissor(x, 0, width, this.height);
    this.renderer.render(this.scene, this.camera);
  }

  // Draws if anything has changed.
  draw() {
    this.resize();
    this.controls.update();
    const { width } = this;
    if (!this.filled || !this.stale || !width || !this.height) return;
    this.stale = false;
    if (this.mode === "with") return this.drawPart(1, 0, width, 0, width);
    const at = Math.round(this.mode === "side" ? width / 2 : this.split * width);
    if (this.mode === "side") {
      this.drawPart(0, 0, at, 0, at);
      this.drawPart(1, at, width - at, at, width - at);
    } else {
      this.drawPart(0, 0, at, 0, width);
      this.drawPart(1, at, width - at, 0, width);
    }
  }
}
