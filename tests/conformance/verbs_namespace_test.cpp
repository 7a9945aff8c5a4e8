// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Peers in different pid namespaces, where one pid means two processes: B runs in a namespace in
// which A's pid is that of a decoy, and the decoy has memory at the address of A's region.
#include "peer/programs.h"
#include "verbs_fixture.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace ib::conformance {
namespace {

// Far below the addresses that the kernel picks, and program memory for every sanitizer.
constexpr std::uint64_t kPlace = 0x7ea0'0000'0000;
constexpr std::uint64_t kLength = 256 * 1024;

class PidNamespace : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "making a pid namespace wants root";
    decoy_file_ = ::testing::TempDir() + "softib-decoy-" + std::to_string(::getpid());
    const int file = ::open(decoy_file_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    ASSERT_EQ(::ftruncate(file, kLength), 0);
    void* decoys = ::mmap(nullptr, kLength, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)::close(file);
    ASSERT_NE(decoys, MAP_FAILED);
    decoys_ = static_cast<unsigned char*>(decoys);
    std::memset(decoys_, kDecoys, kLength);
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    void* const place = reinterpret_cast<void*>(kPlace);
    ASSERT_EQ(::mmap(place, kLength, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
              place);
    HostSettings settings;
    settings.socket = TestFabric::shared().socket();
    settings.path = GetParam();
    std::string reason;
    auto here = make_local_channel(settings, reason);
    ASSERT_NE(here, nullptr) << reason;
    a = std::make_unique<Side>("A", std::move(here));
    settings.wrapper = {kNamespacePeer, std::to_string(::getpid()), std::to_string(kPlace),
                        std::to_string(kLength), decoy_file_};
    auto there = make_process_channel(settings, reason);
    if (there == nullptr) GTEST_SKIP() << "no pid namespace to be had here: " << reason;
    b = std::make_unique<Side>("B", std::move(there));
    qa = a->new_qp();
    qb = b->new_qp();
    connect(qa, qb, QpType::Rc);
    RegionSpec spec;
    spec.pd = a->pd();
    spec.access = kAllAccess;
    spec.address = kPlace;
    spec.iova = kPlace;
    spec.length = kLength;
    ma = a->region_over(spec);
    mb = b->region(kLength);
  }
  void TearDown() override {
    for (Side* side : {a.get(), b.get()}) {
      if (side != nullptr) (void)side->expect(Command::DestroyAll);
    }
    a.reset();
    b.reset();
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    (void)::munmap(reinterpret_cast<void*>(kPlace), kLength);
    if (decoys_ != nullptr) (void)::munmap(decoys_, kLength);
    (void)::unlink(decoy_file_.c_str());
  }
  bool decoy_is_intact() const {
    return std::all_of(decoys_, decoys_ + kLength, [](unsigned char c) { return c == kDecoys; });
  }
  // Every operation in which one side writes to the other or reads from it.
  static void exchange(const Qp& from, const Qp& to, const Region& mine, const Region& theirs) {
    const Cq& done = from.side->cq();
    for (const std::uint32_t bytes : {8u, 100u, 4096u, 100'000u}) {
      mine.fill(bytes);
      theirs.fill(1);
      from.send(rdma(WrOpcode::RdmaWrite, 1, {mine.sge(0, bytes)}, theirs));
      (void)done.one(WcStatus::Success);
      EXPECT_EQ(theirs.mismatches(bytes, 0, bytes), 0u) << bytes;
      mine.fill(2);
      from.send(rdma(WrOpcode::RdmaRead, 2, {mine.sge(0, bytes)}, theirs));
      (void)done.one(WcStatus::Success);
      EXPECT_EQ(mine.mismatches(bytes, 0, bytes), 0u) << bytes;
      theirs.fill(1);
      to.receive(3, {theirs.sge(0, bytes)});
      from.send(send_work(4, {mine.sge(0, bytes)}));
      (void)done.one(WcStatus::Success);
      (void)to.side->cq().one(WcStatus::Success);
      EXPECT_EQ(theirs.mismatches(bytes, 0, bytes), 0u) << bytes;
    }
    theirs.set_word(0, 5);
    Work add = rdma(WrOpcode::AtomicFetchAdd, 5, {mine.sge(0, 8)}, theirs);
    add.compare_add = 3;
    from.send(add);
    (void)done.one(WcStatus::Success);
    EXPECT_EQ(theirs.word(0), 8u);
    EXPECT_EQ(mine.word(0), 5u);
  }

  static constexpr unsigned char kDecoys = 0xd5;
  std::unique_ptr<Side> a;
  std::unique_ptr<Side> b;
  Qp qa;
  Qp qb;
  Region ma;
  Region mb;

 private:
  std::string decoy_file_;
  unsigned char* decoys_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Verbs, PidNamespace,
                         ::testing::Values("auto", "adopted", "process_vm", "bounce"));

TEST_P(PidNamespace, NobodyElseIsTouched) {
  exchange(qb, qa, mb, ma);
  EXPECT_TRUE(decoy_is_intact()) << "B wrote into the process that has A's number in its namespace";
  exchange(qa, qb, ma, mb);
  EXPECT_TRUE(decoy_is_intact());
}

}  // namespace
}  // namespace ib::conformance
