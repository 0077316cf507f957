package transfer

// TrailerLength is the length of the trailer at the end of a backup.
const TrailerLength = trailerLength
