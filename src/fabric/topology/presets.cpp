// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of presets and the smallest of them.
#include "fabric/topology/presets.h"

#include "fabric/topology/link_names.h"
#include "fabric/topology/preset_parts_internal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace ib::fabric {
namespace {

struct Preset {
  std::string_view name;
  void (*build)(PresetArguments& arguments, TopologyBuilder& builder);
};
constexpr std::array<Preset, 6> kPresets{{{"back-to-back", build_back_to_back},
                                          {"star", build_star},
                                          {"fat-tree", build_fat_tree},
                                          {"torus", build_torus},
                                          {"dragonfly", build_dragonfly},
                                          {"random", build_random}}};

const Preset* find_preset(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  const auto* found = std::find_if(kPresets.begin(), kPresets.end(),
                                   [&](const Preset& preset) { return preset.name == name; });
  return found != kPresets.end() ? found : nullptr;
}

template <std::size_t N>
std::string name_list(const std::array<LinkName, N>& names) {
  std::string text;
  for (const auto& [code, name] : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

// Of all cables: EDR and 4x if nothing else is said.
std::uint8_t take_speed(PresetArguments& arguments) {
  std::string name(arguments.take_text("speed"));
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const std::uint8_t code = name.empty() ? TopologyCable{}.speed : speed_code(name);
  if (code == 0) {
    arguments.fail(Status::InvalidParameter,
                   fmt::format("speed is '{}'; it can be one of {}", name, name_list(kSpeedNames)));
  }
  return code;
}

std::uint8_t take_width(PresetArguments& arguments) {
  std::string name(arguments.take_text("width"));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::uint8_t code = name.empty() ? TopologyCable{}.width : width_code(name);
  if (code == 0) {
    arguments.fail(Status::InvalidParameter,
                   fmt::format("width is '{}'; it can be one of {}", name, name_list(kWidthNames)));
  }
  return code;
}

// SplitMix64: the same numbers on every machine.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : state_(seed) {}
  std::uint32_t below(std::size_t limit) {
    state_ += 0x9e3779b97f4a7c15ull;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
    mixed ^= mixed >> 31;
    return static_cast<std::uint32_t>((mixed >> 32) * limit >> 32);
  }

 private:
  std::uint64_t state_;
};

// Switches with ports that are free, the next of each being the first of them.
class FreePorts {
 public:
  FreePorts(std::uint32_t first, std::uint32_t switches, std::uint32_t ports)
      : first_(first), ports_(ports), used_(switches) {}
  void open(std::uint32_t number) { open_.push_back(number); }
  std::size_t open_count() const { return open_.size(); }
  std::uint32_t open_at(std::size_t place) const { return open_[place]; }
  // The next port of the switch in this place of the list, which loses it with its last port.
  TopologyEnd take(std::size_t place) {
    const std::uint32_t number = open_[place];
    const std::uint32_t port = ++used_[number];
    if (port == ports_) {
      open_[place] = open_.back();
      open_.pop_back();
    }
    return {first_ + number, port};
  }

 private:
  std::uint32_t first_;
  std::uint32_t ports_;
  std::vector<std::uint32_t> used_;
  std::vector<std::uint32_t> open_;
};

}  // namespace

const char* const kPresetHelp =
    "  back-to-back             two HCAs and a cable\n"
    "  star:N                   N HCAs at one switch; N is 1 to 254\n"
    "  fat-tree:hcas=H,ports=P  H HCAs at switches of P ports, with 2 levels of\n"
    "                           switches, or 3 if H is above P*P/2\n"
    "  fat-tree:levels=L,ports=P\n"
    "                           as many HCAs as L levels carry: P*P/2 (L is 2) or\n"
    "                           P*P*P/4 (L is 3); levels=2,ports=36 has 648\n"
    "  torus:XxY, torus:XxYxZ   a switch at each point of the torus, with hosts=N\n"
    "                           HCAs (1 unless given)\n"
    "  dragonfly:a=A,p=P,h=H    groups of A switches, each with P HCAs and H cables\n"
    "                           to other groups; groups=G (A*H+1 unless given)\n"
    "  random:nodes=N,switches=S,ports=P,seed=R\n"
    "                           N HCAs (16 unless given) at S switches (4) of P\n"
    "                           ports (24), joined at random; R (1) chooses how\n"
    "  All take speed=SDR, DDR, QDR, FDR10, FDR, EDR (unless given), HDR or NDR and\n"
    "  width=1x, 2x, 4x (unless given), 8x or 12x.\n";

bool is_preset(std::string_view text) {
  return find_preset(text) != nullptr;
}

Result<Topology> preset_topology(std::string_view text, std::string& reason) {
  const Preset* preset = find_preset(text);
  if (preset == nullptr) {
    reason = fmt::format(
        "there is no topology '{}'; there are back-to-back, star, fat-tree, torus, "
        "dragonfly and random",
        text.substr(0, text.find(':')));
    return Status::NotFound;
  }
  const std::size_t after = std::min(preset->name.size() + 1, text.size());
  PresetArguments arguments(preset->name, text.substr(after));
  const std::uint8_t width = take_width(arguments);
  TopologyBuilder builder(width, take_speed(arguments));
  preset->build(arguments, builder);
  IB_CHECK(arguments.finish(reason));
  Topology topology = builder.take();
  IB_CHECK(check(topology, reason));
  return topology;
}

void build_back_to_back(PresetArguments& arguments, TopologyBuilder& builder) {
  if (builder.begin(2, 0, 0, arguments) == Status::Ok) builder.connect({0, 1}, {1, 1});
}

void build_star(PresetArguments& arguments, TopologyBuilder& builder) {
  const std::uint32_t hcas = arguments.take_first_number("the number of HCAs", 1, kMaxSwitchPorts);
  if (builder.begin(hcas, 1, hcas, arguments) != Status::Ok) return;
  const std::uint32_t hub = builder.add_switch("switch-0", hcas);
  for (std::uint32_t i = 0; i < hcas; ++i) builder.connect({i, 1}, {hub, i + 1});
}

// A tree that joins all switches, then the HCAs, then one cable more for each switch where it finds
// two free ports.
void build_random(PresetArguments& arguments, TopologyBuilder& builder) {
  const std::uint32_t hcas = arguments.take_number("nodes", 16, 1, kMaxTopologyLids);
  const std::uint32_t switches = arguments.take_number("switches", 4, 1, kMaxTopologyLids);
  const std::uint32_t ports = arguments.take_number("ports", 24, 2, kMaxSwitchPorts);
  Generator random(arguments.take_number("seed", 1, 0, 0xffffffff));
  const std::uint64_t needed = hcas + 2 * (std::uint64_t{switches} - 1);
  if (needed > std::uint64_t{switches} * ports) {
    arguments.fail(
        Status::InvalidParameter,
        fmt::format("{} switches of {} ports have {} ports; {} nodes and the cables that "
                    "join the switches need {}",
                    switches, ports, std::uint64_t{switches} * ports, hcas, needed));
  }
  if (builder.begin(hcas, switches, ports, arguments) != Status::Ok) return;
  FreePorts free(hcas, switches, ports);
  for (std::uint32_t i = 0; i < switches; ++i) {
    builder.add_switch(fmt::format("switch-{}", i), ports);
    free.open(i);
    if (i == 0) continue;
    const std::size_t place = random.below(free.open_count() - 1);
    const TopologyEnd own = free.take(free.open_count() - 1);
    builder.connect(free.take(place), own);
  }
  for (std::uint32_t i = 0; i < hcas; ++i) {
    builder.connect({i, 1}, free.take(random.below(free.open_count())));
  }
  for (std::uint32_t i = 0; i < switches && free.open_count() > 1; ++i) {
    const std::size_t one = random.below(free.open_count());
    const std::uint32_t number = free.open_at(one);
    const TopologyEnd end = free.take(one);
    // The list has another order if that was its last port.
    std::size_t other = random.below(free.open_count());
    if (free.open_at(other) == number) other = (other + 1) % free.open_count();
    builder.connect(end, free.take(other));
  }
}

}  // namespace ib::fabric
