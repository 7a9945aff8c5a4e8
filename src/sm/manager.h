// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Manager: an InfiniBand subnet manager [IBA1 14.4] at one port.
//
// Sans-IO: SMPs that come, and the time, are its inputs; SMPs to send and the next time that it
// wants to be called are its outputs. It finds what is in the subnet, agrees with other managers
// who is the master, gives LIDs, writes tables, and makes ports Active; then it waits for traps and
// looks again from time to time. After a change only what has changed is read and written.
//
// Thread rule: one owner.
#pragma once

#include "base/time.h"
#include "sm/election.h"
#include "sm/routing/engine.h"
#include "sm/smp_forms.h"
#include "sm/subnet/lids.h"
#include "sm/sweep/discovery.h"
#include "sm/sweep/settings.h"
#include "sm/sweep/setup.h"
#include "sm/sweep/window.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ib::sm {

// classes: allow(members) what is known, and the parts that each do a step of a sweep
// classes: allow(methods) the steps of a sweep are private methods
class Manager {
 public:
  // `random`: no other manager of the subnet has the same.
  Manager(const Settings& settings, std::uint32_t random);
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;
  ~Manager() = default;

  // --- Inputs ---

  // An SMP has come to the port: an answer, a request about SMInfo, or a trap. `source`: its LID,
  // permissive of a directed route. Returns false if it is for nobody here.
  bool on_smp(const mad::Smp& smp, std::uint16_t source, Instant now);
  // The subnet is to be looked at again, from the own port on, or only where something has changed.
  void request_sweep(bool is_full);
  // Links of this switch have changed, as its trap 128 tells.
  void look_at(std::uint64_t switch_guid);
  // 0 to 15. Others hear of it when they poll; a master looks at their SMInfo soon.
  void set_priority(std::uint8_t priority);
  // Multicast groups as they are to be from now on.
  void set_groups(std::vector<MulticastGroup> groups);

  // --- Outputs ---

  // The next SMP to send. To be called until there is none.
  std::optional<Outgoing> poll(Instant now);
  // When poll() has something to do, if nothing comes before.
  std::optional<Instant> deadline();

  SmState state() const { return election_.state(); }
  SmInfo info() const { return election_.info(); }
  // The other managers, as the last sweep has heard them; ports by index in the subnet.
  const std::vector<Rival>& rivals() const { return rivals_; }
  // It is the master, and all that was found is set up; nothing is under way.
  bool is_settled() const;
  // How often the subnet was set up.
  std::uint64_t generation() const { return generation_; }
  const Subnet& subnet() const { return subnet_; }
  const Problems& problems() const { return problems_; }
  std::string_view routing() const { return engine_ ? engine_->name() : std::string_view{}; }
  // Whether packets of different ways have different service levels.
  bool has_service_levels() const { return engine_ && engine_->has_lanes(); }
  // Of packets from one port to another, by index in the subnet.
  std::uint8_t service_level(std::uint32_t from, std::uint32_t to) const;

 private:
  enum class Phase : std::uint8_t { Idle, Discovering, Asking, SettingUp };

  std::optional<Request> next_request(Instant now);
  std::optional<mad::Smp> smp_for(const Request& request) const;
  std::optional<Outgoing> send(const Request& request, Instant now);
  void dispatch(const Request& request, const Answer* answer, Instant now);
  bool advance(Instant now);
  bool begin_due(Instant now);
  void begin_sweep(bool is_timed);
  void on_discovered(Instant now);
  void on_asked(Instant now);
  void begin_setup();
  void forget_writes();
  void begin_anew(Instant now);
  bool has_other_writer(const std::vector<Rival>& before) const;
  void begin_narrow();
  bool route();
  bool route_touched();
  void adapt(const std::optional<GraphChange>& change);
  void begin_partial_setup();
  void begin_stages(bool linear, const std::vector<std::uint32_t>* ports);
  void on_set_up(Instant now);
  void rest(Instant now, Duration pause);
  void follow(const Decision& decision, Instant now);
  void control(std::uint32_t port, std::uint32_t modifier, Instant now);

  void on_sm_info(const Request& request, const Answer* answer, Instant now);
  void begin_state(bool sweeps, Instant now);
  bool on_control(const mad::Smp& smp, std::uint16_t source, Instant now);
  bool on_trap(const mad::Smp& smp, std::uint16_t source);
  void look_at_node(std::uint32_t node);
  mad::SmpData own_info() const { return as_data(election_.info()); }

  Settings settings_;
  Subnet subnet_;
  Problems problems_;
  Window window_;
  Discovery discovery_;
  Setup setup_;
  Lids lids_;
  Election election_;

  // The graph that tables are made from.
  Graph graph_;
  std::vector<std::uint32_t> node_of_;
  std::unique_ptr<Engine> engine_;
  bool has_all_tables_ = false;  // of this engine, as it has filled or renewed them
  StaleWays stale_;              // to be renewed
  std::string routing_reason_;   // why it is not the one that is wanted
  std::vector<MulticastGroup> groups_;

  Phase phase_ = Phase::Idle;
  std::uint64_t generation_ = 0;
  struct {
    bool full = true;
    bool light = false;
    bool tables = false;                 // multicast groups are others
    bool tables_then = false;            // in the next sweep tables are compared, whatever it finds
    bool anew = false;                   // nothing of what was written counts
    std::vector<std::uint32_t> ports{};  // to be read in the next light sweep
    std::vector<std::uint32_t> doubtful{};  // the same, with what is behind them
    std::vector<std::uint32_t> switches{};  // that have told of a link; a narrow sweep suffices
    bool is_any() const { return full || light || tables || !switches.empty(); }
  } wanted_;
  struct {
    Instant next{};                     // sweep, or poll of a standby
    Duration pause = Duration::zero();  // between attempts to set up what fails
    std::uint32_t missed = 0;           // polls
    bool is_polling = false;
  } clock_;
  bool is_anew_ = false;                // this sweep writes everything
  bool is_partial_ = false;             // this one does not look everywhere
  std::vector<std::uint32_t> touched_;  // ports to be set up by it
  std::vector<std::uint32_t> gone_;     // nodes that this one has found to be gone
  std::vector<Rival> rivals_, heard_;   // of the last sweep; of this one
  std::deque<std::uint32_t> to_ask_;    // ports of other managers
  std::deque<Outgoing> outbox_;
};

}  // namespace ib::sm
